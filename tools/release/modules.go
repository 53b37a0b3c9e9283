package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// module is one that is linked into the program.
type module struct {
	Path, Version, Sum string

	dir     string // of its source
	license string // its SPDX identifier
	texts   []text
}

// linkage is what a program says that it was made of.
type linkage struct {
	info    *debug.BuildInfo
	modules []*module // sorted by path

	packages []npmPackage // that the page bundles
}

// version is that of the program.
func (l *linkage) version() string {
	if v := l.info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "dev"
}

// modulesOf reads which modules a program has, and finds their source and licences.
func modulesOf(root string, program []byte) (*linkage, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	dirs, err := moduleDirs(root)
	if err != nil {
		return nil, err
	}
	l := &linkage{info: info}
	if l.packages, err = packagesOf(root); err != nil {
		return nil, err
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release has no replaced modules", d.Path, d.Replace.Path)
		}
		m := &module{Path: d.Path, Version: d.Version, Sum: d.Sum, dir: dirs[d.Path+"@"+d.Version]}
		if m.dir == "" {
			return nil, fmt.Errorf("%s@%s is linked, but not in go.mod", d.Path, d.Version)
		}
		if err := m.findLicense(); err != nil {
			return nil, err
		}
		l.modules = append(l.modules, m)
	}
	return l, nil
}

// moduleDirs finds the folders of all modules of a build.
func moduleDirs(root string) (map[string]string, error) {
	listed, err := output(root, nil, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var m struct{ Path, Version, Dir string }
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, err
		}
		dirs[m.Path+"@"+m.Version] = m.Dir
	}
}
