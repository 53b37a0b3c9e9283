package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hdsd/test/envoy"
)

// binary returns the path of an hdsd built from this code: with the race detector for
// tests, without for benchmarks.
func binary(t testing.TB) string {
	t.Helper()
	built := raceBinary
	if _, ok := t.(*testing.B); ok {
		built = plainBinary
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	raceBinary  = sync.OnceValues(func() (string, error) { return build("hdsd-race", "-race") })
	plainBinary = sync.OnceValues(func() (string, error) { return build("hdsd", "-trimpath") })
)

// Plain returns the path of an hdsd without the race detector, for tests that measure.
func Plain(t testing.TB) string {
	t.Helper()
	path, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds hdsd into the repository's .cache, where all packages under test find
// it.
func build(name string, flags ...string) (string, error) {
	root, err := envoy.Repository()
	if err != nil {
		return "", err
	}
	if err := notice(root); err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made, binary := filepath.Join(dir, name), filepath.Join(cache, name)
	arguments := append(append([]string{"build"}, flags...), "-o", made, "hdsd/cmd/hdsd")
	command := exec.Command("go", arguments...)
	command.Dir = root
	if !slices.Contains(flags, "-race") {
		command.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build, which has compiled all of it
	}
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building hdsd: %w\n%s", err, out)
	}
	return binary, os.Rename(made, binary)
}

// notice opens all sources of hdsd. go test repeats a cached result until a file
// changes that the test has opened, and does not see the files that the compiler opens
// for it.
func notice(root string) error {
	const paths = `{{with .Module}}{{if .Main}}{{println $.Dir}}{{range $.EmbedFiles}}{{printf "%s/%s\n" $.Dir .}}{{end}}{{end}}{{end}}`
	command := exec.Command("go", "list", "-deps", "-f", paths, "hdsd/cmd/hdsd")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("listing the packages of hdsd: %w", err)
	}
	sources := []string{filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")}
	for line := range strings.Lines(string(out)) {
		if path := strings.TrimSuffix(line, "\n"); path != "" {
			sources = append(sources, path)
		}
	}
	for _, path := range sources {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}
