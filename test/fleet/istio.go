package fleet

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"hdsd/test/envoy"
)

// Istio starts Istio's control plane with a configuration of Istio's, and returns its
// address.
func Istio(t testing.TB, configuration string) (address string) {
	t.Helper()
	binary, err := istioBinary()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	address = envoy.FreeAddress(t)
	var said lockedBuffer
	command := exec.Command(binary, "-address", address, "-config", path)
	command.Stdout, command.Stderr = &said, &said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended already
		_ = command.Wait()
		if t.Failed() {
			t.Logf("Istio said:\n%s", said.String())
		}
	})
	envoy.Eventually(t, Patience, "Istio to serve", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address
}

// istioBinary builds it into the repository's .cache.
var istioBinary = sync.OnceValues(func() (string, error) {
	root, err := envoy.Repository()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(root, ".cache", "istio")
	command := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-o", binary, ".") // as make lint, which has compiled all of it
	command.Dir = filepath.Join(root, "test", "istio")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Istio's control plane: %w\n%s", err, out)
	}
	return binary, nil
})
