package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// project is a folder with configuration in it.
type project struct {
	name    string // of the module, or of the folder
	version string // empty: it is a folder
	folder  string // where it is, once it is here
}

// modules are what docs/internals/corpus.md is made of. Contour has no such file, which its
// row shows.
var modules = []project{
	{name: "github.com/envoyproxy/go-control-plane", version: "v0.14.0"},
	{name: "github.com/envoyproxy/gateway", version: "v1.9.1"},
	{name: "istio.io/istio", version: "v0.0.0-20260827124520-eed52ebb66ad"},
	{name: "github.com/projectcontour/contour", version: "v1.33.8"},
	{name: "github.com/cilium/cilium", version: "v1.20.2"},
	{name: "github.com/envoyproxy/ratelimit", version: "v1.4.1-0.20260122083618-3fb702589d36"},
}

// fetch downloads a module by the go command, unless it is in its cache.
func (p *project) fetch(ctx context.Context) error {
	if p.version == "" {
		return nil
	}
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", p.name+"@"+p.version)
	command.Dir = os.TempDir() // outside any module, whose go.sum would change
	var said bytes.Buffer
	command.Stderr = &said
	out, failed := command.Output()
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return fmt.Errorf("downloading %s: %w: %s", p.name, errors.Join(failed, err), said.Bytes())
	}
	if answer.Error != "" {
		return fmt.Errorf("downloading %s: %s", p.name, answer.Error)
	}
	p.folder = answer.Dir
	return nil
}

// choose gives the modules, or folders where there are some.
func choose(folders []string) ([]project, error) {
	if len(folders) == 0 {
		return modules, nil
	}
	var all []project
	for _, folder := range folders {
		folder, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		all = append(all, project{name: filepath.Base(folder), folder: folder})
	}
	return all, nil
}
