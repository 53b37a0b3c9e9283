package etcd

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	real "hdsd/internal/demo/envoy"
	"hdsd/test/envoy"
)

// Build builds the server, if that has not been done, and returns the path of the program.
func Build() (string, error) { return build() }

var (
	build     = sync.OnceValues(func() (string, error) { return buildIn("etcd", nil) })
	buildSlow = sync.OnceValues(func() (string, error) { return buildIn("etcd-slow", slow) })
)

// buildIn builds the server into the repository's .cache, under a name that tells its version. Changes are files of
// modules to replace, by module and path. Other processes that want the server at the same time wait.
func buildIn(name string, changes map[[2]string]string) (string, error) {
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
	digest := sha256.Sum256(fmt.Append(versions, changes)) // maps print in the order of their keys
	if changes == nil {
		digest = sha256.Sum256(versions)
	}
	binary := filepath.Join(cache, fmt.Sprintf("%s-%x", name, digest[:6]))
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
	if changes != nil {
		folder, err := os.MkdirTemp("", "etcd")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(folder)
		if err := changeModules(module, folder, changes); err != nil {
			return "", err
		}
		command.Args = slices.Insert(command.Args, 2, "-modfile="+filepath.Join(folder, "go.mod"))
	}
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building etcd: %w\n%s", err, out)
	}
	return binary, os.Rename(binary+".new", binary)
}

// changeModules copies modules into a folder, with changes, and writes a go.mod that has the copies.
func changeModules(module, folder string, changes map[[2]string]string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	for file, text := range changes {
		list := exec.Command("go", "mod", "download", "-json", file[0])
		list.Dir = module
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("finding %s: %w", file[0], err)
		}
		var found struct{ Dir string }
		if err := json.Unmarshal(out, &found); err != nil {
			return err
		}
		copied := filepath.Join(folder, file[0])
		if err := os.CopyFS(copied, os.DirFS(found.Dir)); err != nil {
			return err
		}
		path := filepath.Join(copied, file[1])
		if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
		edit := exec.Command("go", "mod", "edit", "-replace="+file[0]+"="+copied, filepath.Join(folder, "go.mod"))
		if out, err := edit.CombinedOutput(); err != nil {
			return fmt.Errorf("replacing %s: %w\n%s", file[0], err, out)
		}
	}
	return nil
}

// Binary returns the path of the server.
func Binary(t testing.TB) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
