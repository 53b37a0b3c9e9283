package envoy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience bounds the start of an Envoy on a busy machine.
const patience = 30 * time.Second

// Process is a running Envoy.
type Process struct {
	*Child
	ID     string // its node id
	Listen string // host:port of its listener, "" if it has none
	admin  string // host:port
}

// launch runs an Envoy with a bootstrap and waits until its admin interface answers. It
// works in folder, or in a folder of its own if that is empty. The process ends with
// Kill or Stop, or with its parent.
func launch(ctx context.Context, binary, id, folder string, bootstrap []byte, args ...string) (*Process, error) {
	dir, err := os.MkdirTemp("", "envoy-")
	if err != nil {
		return nil, err
	}
	p := &Process{ID: id}
	config, admin := filepath.Join(dir, "bootstrap.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(config, bootstrap, 0o600); err != nil {
		return nil, err
	}
	command := exec.Command(binary, append([]string{
		"-c", config, "--concurrency", "1", "-l", "warning",
		"--disable-hot-restart", "--admin-address-path", admin,
	}, args...)...)
	command.Dir = cmp.Or(folder, dir)
	if p.Child, err = StartChild(command, func() { os.RemoveAll(dir) }); err != nil {
		return nil, err
	}
	if err := p.awaitAdmin(ctx, admin); err != nil {
		p.Kill()
		return nil, fmt.Errorf("Envoy %s: %w; it said:\n%s", id, err, p.Logs())
	}
	return p, nil
}

func (p *Process) awaitAdmin(ctx context.Context, file string) error {
	if !Await(ctx, patience, func() bool {
		address, err := os.ReadFile(file)
		p.admin = strings.TrimSpace(string(address))
		return err == nil && p.admin != "" || !p.Alive()
	}) {
		return fmt.Errorf("no admin interface after %v", patience)
	}
	if !p.Alive() {
		return fmt.Errorf("ended while starting: %w", p.err)
	}
	return nil
}

var client = http.Client{Timeout: patience}

// Get sends a request to the admin interface.
func (p *Process) Get(path string) ([]byte, error) {
	response, err := client.Get("http://" + p.admin + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", path, response.Status, body)
	}
	return body, err
}

// Await polls a condition. It returns true once that is true, and false when patience or ctx
// ends first. The longer it waits, the less often it looks: looking costs those who answer.
func Await(ctx context.Context, patience time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := 5 * time.Millisecond; !condition(); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}
