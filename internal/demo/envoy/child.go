package envoy

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Child is a process that ends with Kill or Stop, or with its parent.
type Child struct {
	command *exec.Cmd
	exited  chan struct{} // closed once the process is gone
	err     error         // how it ended; set before exited is closed

	mu   sync.Mutex
	text bytes.Buffer // the last part of its output; guarded by mu
}

// maxLog bounds the output that is kept, in bytes.
const maxLog = 1 << 20

// StartChild starts a command, and calls ended once the process is gone.
func StartChild(command *exec.Cmd, ended func()) (*Child, error) {
	c := &Child{command: command, exited: make(chan struct{})}
	command.Stdout, command.Stderr = c, c
	command.SysProcAttr = endWithParent()
	if err := command.Start(); err != nil {
		ended()
		return nil, err
	}
	go func() {
		c.err = command.Wait()
		ended()
		close(c.exited)
	}()
	return c, nil
}

// Alive reports whether the process runs.
func (c *Child) Alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Exited is closed once the process has ended in any way.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Kill ends the process as kill -9 does, and waits for its end.
func (c *Child) Kill() {
	_ = c.command.Process.Kill() // it may be gone already
	<-c.exited
}

// Stop asks the process to end and waits for it. It kills a process that does not end
// in time, and returns an error.
func (c *Child) Stop() error {
	_ = c.command.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-c.exited:
		return nil
	case <-time.After(patience):
		c.Kill()
		return fmt.Errorf("%v did not end on SIGTERM within %v", c.command.Args, patience)
	}
}

// Err returns how the process ended.
func (c *Child) Err() error {
	if c.Alive() {
		return nil
	}
	return c.err
}

// Pause stops the process until Resume, like a machine that hangs.
func (c *Child) Pause() error { return c.command.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (c *Child) Resume() error { return c.command.Process.Signal(syscall.SIGCONT) }

// Write takes the output of the process.
func (c *Child) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text.Len() > maxLog {
		c.text.Next(maxLog / 2)
	}
	return c.text.Write(text)
}

// Logs returns the last part of the process's output.
func (c *Child) Logs() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}
