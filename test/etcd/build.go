package etcd

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
)

// Build builds the server, if that has not been done, and returns the path of the program.
func Build() (string, error) { return build() }

// build builds the server into the repository's .cache, under a name that tells its version.
// Other processes that want it at the same time wait.
var build = sync.OnceValues(func() (string, error) {
	root, err := envoy.Repository()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "tools", "etcd")
	versions, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	binary := filepath.Join(cache, fmt.Sprintf("etcd-%x", sha256.Sum256(versions))[:len("etcd-")+12])
	unlock, err := real.Lock(binary + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	command := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-o", binary+".new", "go.etcd.io/etcd/server/v3") // with the standard library as make build has compiled it
	command.Dir = module
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building etcd: %w\n%s", err, out)
	}
	return binary, os.Rename(binary+".new", binary)
})

// Binary returns the path of the server.
func Binary(t testing.TB) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
