package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

// String returns linux_amd64 and the like.
func (p platform) String() string { return p.os + "_" + p.arch }

// source is the checkout that is built.
type source struct {
	root      string
	committed time.Time // when its commit was made
	files     []file    // that every archive has
}

// documents are what an archive has beside the program.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "docs/alerts.yaml", "docs/man/*.1", "examples/*"}

// readSource reads what all platforms share.
func readSource(root string) (*source, error) {
	stamp, err := output(root, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(stamp), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("time of the commit: %w", err)
	}
	s := &source{root: root, committed: time.Unix(seconds, 0).UTC()}
	for _, pattern := range documents {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s: nothing there (%v)", pattern, err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			s.files = append(s.files, file{name: filepath.ToSlash(name), content: content})
		}
	}
	return s, nil
}

// pack builds the program for a platform, and gives the archive and its name.
func (s *source) pack(p platform) (name string, packed []byte, err error) {
	program, err := s.build(p)
	if err != nil {
		return "", nil, err
	}
	linked, err := modulesOf(s.root, program)
	if err != nil {
		return "", nil, err
	}
	texts, err := linked.licenses()
	if err != nil {
		return "", nil, err
	}
	bill, err := linked.bill(p)
	if err != nil {
		return "", nil, err
	}
	folder := fmt.Sprintf("hdsd_%s_%s", linked.version(), p)
	files := append([]file{
		{name: "hdsd", content: program, executable: true},
		{name: "THIRD_PARTY_LICENSES", content: texts},
		{name: "sbom.cdx.json", content: bill},
	}, s.files...)
	packed, err = archive(folder, files, s.committed)
	return folder + ".tar.gz", packed, err
}

// build builds the program as make build does, without anything of this machine.
func (s *source) build(p platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hdsd")
	environment := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"}
	if _, err := output(s.root, environment, "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-buildvcs=auto", "-o", path, "./cmd/hdsd"); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// output runs a command in a folder, and returns what it prints.
func output(dir string, environment []string, name string, arguments ...string) (string, error) {
	command := exec.Command(name, arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), environment...)
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, problems.String())
	}
	return string(out), nil
}
