package envoy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long an Envoy may take to start on a busy machine.
const patience = 30 * time.Second

// Process is a running Envoy.
type Process struct {
	ID     string // its node id
	Listen string // host:port of its listener, "" if it has none

	dir     string // removed when it ends
	admin   string // host:port
	command *exec.Cmd
	logs    logBuffer
	exited  chan struct{} // closed once the process is gone
	err     error         // how it ended, once exited is closed
}

// launch runs an Envoy with a bootstrap and waits until its admin interface answers. It
// works in folder, or in a folder of its own if that is empty. The process ends with
// Kill or Stop, or with its parent.
func launch(ctx context.Context, binary, id, folder string, bootstrap []byte, args ...string) (*Process, error) {
	dir, err := os.MkdirTemp("", "envoy-")
	if err != nil {
		return nil, err
	}
	p := &Process{ID: id, dir: dir, exited: make(chan struct{})}
	config, admin := filepath.Join(dir, "bootstrap.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(config, bootstrap, 0o600); err != nil {
		return nil, err
	}
	p.command = exec.Command(binary, append([]string{
		"-c", config, "--concurrency", "1", "-l", "warning",
		"--disable-hot-restart", "--admin-address-path", admin,
	}, args...)...)
	p.command.Stdout, p.command.Stderr = &p.logs, &p.logs
	p.command.Dir = cmp.Or(folder, dir)
	p.command.SysProcAttr = EndWithParent()
	if err := p.command.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() {
		p.err = p.command.Wait()
		os.RemoveAll(dir)
		close(p.exited)
	}()
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

// Alive reports whether the process runs.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Exited is closed once the process has ended in any way.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill ends the process as kill -9 does, and waits for its end.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may be gone already
	<-p.exited
}

// Stop asks the process to end and waits for it. It kills a process that does not end
// in time, and returns an error.
func (p *Process) Stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-p.exited:
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("Envoy %s did not end on SIGTERM within %v", p.ID, patience)
	}
}

// Err returns how the process ended.
func (p *Process) Err() error {
	if p.Alive() {
		return nil
	}
	return p.err
}

// Logs returns the output of the process so far.
func (p *Process) Logs() string { return p.logs.String() }

// Pause stops the process until Resume, like a machine that hangs.
func (p *Process) Pause() error { return p.command.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (p *Process) Resume() error { return p.command.Process.Signal(syscall.SIGCONT) }

// Await polls a condition every few milliseconds. It returns true once that is true,
// and false when patience or ctx ends first.
func Await(ctx context.Context, patience time.Duration, condition func() bool) bool {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// logBuffer keeps the last part of a process's output.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

const maxLog = 1 << 20

func (b *logBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text.Len() > maxLog {
		b.text.Next(maxLog / 2)
	}
	return b.text.Write(text)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
