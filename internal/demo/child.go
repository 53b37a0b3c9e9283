package demo

import (
	"bytes"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"hdsd/internal/demo/envoy"
)

// stopTimeout is how long a child may take to stop before it is killed.
const stopTimeout = 10 * time.Second

// child is a process of the hdsd binary.
type child struct {
	command *exec.Cmd
	exited  chan struct{}

	mu   sync.Mutex
	text bytes.Buffer // its output; guarded by mu
}

func startChild(binary string, args ...string) (*child, error) {
	c := &child{command: exec.Command(binary, args...), exited: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = c, c
	c.command.SysProcAttr = envoy.EndWithParent()
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.command.Wait() // only its end counts
		close(c.exited)
	}()
	return c, nil
}

// Write collects the output of the process.
func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *child) logs() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *child) alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Pause stops the process until Resume.
func (c *child) Pause() error { return c.command.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (c *child) Resume() error { return c.command.Process.Signal(syscall.SIGCONT) }

// kill ends the process as kill -9 does.
func (c *child) kill() {
	_ = c.command.Process.Kill() // it may be gone already
	<-c.exited
}

func (c *child) stop() {
	_ = c.command.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		c.kill()
	}
}
