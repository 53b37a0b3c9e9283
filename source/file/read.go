package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/config/yamlpb"
	"hdsd/source"
)

// maxBinaryBytes is the largest .pb file taken.
const maxBinaryBytes = 512 << 20

// resource is a Cluster or a ClusterLoadAssignment in a file.
type resource struct {
	file    string
	line    int
	name    string
	cluster *clusterv3.Cluster                // one of the two
	lone    *endpointv3.ClusterLoadAssignment // is there
	broken  bool                              // could not be read in full: what is there is not to be used
	reason  string                            // why it is set aside; empty where it is not
}

func (r *resource) place() string {
	if r.line == 0 {
		return r.file
	}
	return fmt.Sprintf("%s:%d", r.file, r.line)
}

// contents is what files hold.
type contents struct {
	resources []resource
	problems  []source.Problem
}

// read reads a file or a folder. Problems of the second kind are those of
// files that cannot be read as a whole.
func read(path string) (*contents, []source.Problem) {
	info, err := os.Stat(path)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return nil, unreadable(path, "cannot be read: %s", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = list(path); err != nil {
			return nil, unreadable(path, "cannot be read: %s", err)
		}
		if len(files) == 0 {
			return nil, unreadable(path, "holds no .yaml, .yml, .json or .pb file: to have no clusters, put in one with \"resources: []\"")
		}
	}
	all := &contents{}
	var fatal []source.Problem
	for _, file := range files {
		fatal = append(fatal, all.readFile(file)...)
	}
	return all, fatal
}

func unreadable(file, format string, args ...any) []source.Problem {
	return []source.Problem{{File: file, Message: fmt.Sprintf(format, args...)}}
}

// readable tells whether a file of this name in a folder is read.
func readable(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json", ".pb":
		return true
	default:
		return false
	}
}

// list gives the files of a folder by name, links to files included.
func list(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		file := filepath.Join(folder, entry.Name())
		if !readable(entry.Name()) {
			continue
		}
		// A link that leads nowhere is read, so that it is reported.
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

func (c *contents) readFile(file string) []source.Problem {
	most := int64(yamlpb.MaxBytes)
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".json":
	case ".pb":
		most = maxBinaryBytes
	default:
		return unreadable(file, "its name must end in .yaml, .yml, .json or .pb")
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return unreadable(file, "is not a regular file")
	}
	data, err := yamlpb.ReadFile(file, most)
	if err != nil {
		return unreadable(file, "%s", err)
	}
	if filepath.Ext(file) == ".pb" {
		return c.binary(file, data)
	}
	return c.text(file, data)
}
