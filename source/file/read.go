package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/envoy/rules"
	"hdsd/internal/yamlpb"
	"hdsd/source"
)

// maxBinaryBytes is the size limit of a .pb file.
const maxBinaryBytes = 512 << 20

// resource is a Cluster or a ClusterLoadAssignment in a file.
type resource struct {
	file    string
	line    int
	name    string
	cluster *clusterv3.Cluster // without the endpoints that it lists; nil for an assignment
	lists   *source.Assignment // those endpoints, or the assignment
	broken  bool               // not read in full: do not use the rest
	reason  string             // reason why it is rejected; empty if it is not
}

func (r *resource) place() string {
	if r.line == 0 {
		return r.file
	}
	return fmt.Sprintf("%s:%d", r.file, r.line)
}

// contents is the content of files.
type contents struct {
	resources    []resource
	problems     []source.Problem
	listed       int    // all elements
	read         int    // resources among them that were read in full
	places       Places // to add to; nil if not requested
	maxEndpoints int    // endpoints of one cluster; 0: any number
}

// rawFile is the unparsed content of a file.
type rawFile struct {
	path string
	data []byte
}

// read reads a file or the files of a folder. It returns the problems of files that
// cannot be read as a whole.
func read(path string) (files []rawFile, fatal []source.Problem) {
	info, err := os.Stat(path)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return nil, unreadable(path, "cannot be read: %s", err)
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = list(path); err != nil {
			return nil, unreadable(path, "cannot be read: %s", err)
		}
		if len(paths) == 0 {
			return nil, unreadable(path, "holds no .yaml, .yml, .json or .pb file: to have no clusters, put in one with \"resources: []\"")
		}
	}
	for _, path := range paths {
		data, problems := readFile(path)
		fatal = append(fatal, problems...)
		if len(problems) == 0 {
			files = append(files, rawFile{path, data})
		}
	}
	return files, fatal
}

// digest identifies the content of files.
func digest(files []rawFile) (d sum) {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.path, len(f.data))
		h.Write(f.data)
	}
	h.Sum(d[:0])
	return d
}

// parse parses files, and adds the places of assignments to places. It returns the problems of
// files that are invalid as a whole.
func parse(files []rawFile, places Places, maxEndpoints int) (merged *contents, fatal []source.Problem) {
	merged = &contents{}
	for _, f := range files {
		c := &contents{places: places, maxEndpoints: maxEndpoints}
		problems := c.parse(f)
		if len(problems) == 0 && c.listed > 0 && c.read == 0 {
			problems = append(unreadable(f.path, "none of its resources (%d) can be read, so nothing of it is used: "+
				"put them right, or write \"resources: []\" to have no clusters", c.listed), c.problems...)
		}
		fatal = append(fatal, problems...)
		merged.resources = append(merged.resources, c.resources...)
		merged.problems = append(merged.problems, c.problems...)
	}
	return merged, fatal
}

func (c *contents) parse(f rawFile) []source.Problem {
	if filepath.Ext(f.path) == ".pb" {
		return c.binary(f.path, f.data)
	}
	return c.text(f.path, f.data)
}

// excess describes an excess of endpoints in a cluster; empty without one.
func (c *contents) excess(endpoints int) string {
	if c.maxEndpoints == 0 || endpoints <= c.maxEndpoints {
		return ""
	}
	return rules.TooMany(endpoints, c.maxEndpoints)
}

func unreadable(file, format string, args ...any) []source.Problem {
	return []source.Problem{{File: file, Message: fmt.Sprintf(format, args...)}}
}

// readable reports whether a file of this name in a folder is read.
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

// list returns the files of a folder by name, including links to files.
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
		// A dangling link counts as a file, so that reading it reports it.
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

func readFile(file string) ([]byte, []source.Problem) {
	limit := int64(yamlpb.MaxBytes)
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".json":
	case ".pb":
		limit = maxBinaryBytes
	default:
		return nil, unreadable(file, "its name must end in .yaml, .yml, .json or .pb")
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, unreadable(file, "is not a regular file")
	}
	data, err := yamlpb.ReadFile(file, limit)
	if err != nil {
		return nil, unreadable(file, "%s", err)
	}
	return data, nil
}
