package files

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/renameio/v2"
)

// folder is the files on disk.
type folder struct {
	path       string
	identifier string
	versions   map[string]string // by name of the assignment
}

// openFolder creates the folder if missing, and reads the coordinator's files in it. It removes
// unfinished files of a killed process.
func openFolder(path, identifier string) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // Envoys of other users read it
		return nil, fmt.Errorf("folder of the files: %w", err)
	}
	f := &folder{path: path, identifier: identifier, versions: map[string]string{}}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("folder of the files: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if err := f.read(entry.Name()); err != nil {
			return nil, err
		}
	}
	return f, f.writable()
}

// read records the version of a file, if it is one of the coordinator's.
func (f *folder) read(file string) error {
	if unfinished(file) {
		return os.Remove(filepath.Join(f.path, file))
	}
	if !strings.HasSuffix(file, suffix) {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(f.path, file))
	if err != nil {
		return nil //nolint:nilerr // it is foreign, or is written again
	}
	if name, version, err := decode(f.identifier, content); err == nil && Name(name) == file {
		f.versions[name] = version
	}
	return nil
}

// forgetMissing forgets the versions of missing files, so that they are written again. An
// operator may have removed the folder.
func (f *folder) forgetMissing() {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return // nothing can be written either
	}
	present := make(map[string]bool, len(entries))
	for _, entry := range entries {
		present[entry.Name()] = true
	}
	maps.DeleteFunc(f.versions, func(name, _ string) bool { return !present[Name(name)] })
}

// unfinished reports whether a file is one that renameio has not moved into place.
func unfinished(file string) bool {
	rest, hidden := strings.CutPrefix(file, ".")
	_, number, found := strings.Cut(rest, suffix)
	return hidden && found && number != "" && strings.Trim(number, "0123456789") == ""
}

// writable returns the error that the first write would return.
func (f *folder) writable() error {
	file, err := os.CreateTemp(f.path, ".probe-*"+suffix+"0")
	if err != nil {
		return fmt.Errorf("folder of the files: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// put writes an assignment.
func (f *folder) put(r *discoveryv3.Resource) error {
	name := r.GetName()
	content, err := encode(f.identifier, r)
	if err != nil {
		return fmt.Errorf("assignment %q: %w", name, err)
	}
	if err := renameio.WriteFile(f.file(name), content, 0o644, renameio.WithTempDir(f.path)); err != nil {
		return fmt.Errorf("assignment %q: %w", name, err)
	}
	f.versions[name] = r.GetVersion()
	return nil
}

// remove removes the file of a removed assignment.
func (f *folder) remove(name string) error {
	if err := os.Remove(f.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("assignment %q: %w", name, err)
	}
	delete(f.versions, name)
	return nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, Name(name)) }
