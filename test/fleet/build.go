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

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
)

// binary returns the path of an hdsd built from this code, with the race detector where HDSD_RACE
// is set, but for benchmarks.
func binary(t testing.TB) string {
	t.Helper()
	built := plainBinary
	if _, benchmark := t.(*testing.B); !benchmark && os.Getenv("HDSD_RACE") != "" {
		built = raceBinary
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	raceBinary  = sync.OnceValues(func() (string, error) { return build("hdsd-race", "-race") })
	plainBinary = sync.OnceValues(func() (string, error) { return build("hdsd", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w") })
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

// build builds hdsd into the repository's .cache, where all packages under test find it. The
// first of them links it; the others find that it is up to date.
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
	unlock, err := real.Lock(filepath.Join(cache, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(cache, name)
	made := binary + ".built" // in no use, and so go build may replace it
	arguments := append(append([]string{"build"}, flags...), "-o", made, "hdsd/cmd/hdsd")
	command := exec.Command("go", arguments...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build, which has compiled all of it
	if slices.Contains(flags, "-race") {
		command.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=") // as the tests with the race detector
	}
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building hdsd: %w\n%s", err, out)
	}
	return binary, link(made, binary)
}

// link gives a file another name, which processes that run the file before do not notice.
func link(from, to string) error {
	next := to + ".next"
	defer func() { _ = os.Remove(next) }() // Rename leaves it if both names are of that file already
	if err := os.Link(from, next); err != nil {
		return err
	}
	return os.Rename(next, to)
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
