package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a child.
type process struct {
	command *exec.Cmd
	log     string // path of what it says
	exited  chan struct{}
	kill    func() // as kill -9; returns when it has ended
}

// launch starts a program that writes its log to a file of that name.
func launch(log string, stdout io.Writer, program string, arguments ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(program, arguments...), log: log, exited: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = file, file
	if stdout != nil {
		p.command.Stdout = stdout
	}
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		_ = file.Close() // err says more
		return nil, err
	}
	go func() {
		_ = p.command.Wait() // its log says more
		_ = file.Close()
		close(p.exited)
	}()
	p.kill = sync.OnceFunc(func() {
		_ = p.command.Process.Kill() // it may have ended already
		<-p.exited
	})
	return p, nil
}

// helper starts this program as a floor or a peer, and returns its address, which is the
// first line that it prints.
func helper(dir string, arguments ...string) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	read, write := io.Pipe()
	p, err := launch(filepath.Join(dir, strings.ReplaceAll(strings.Join(arguments, "-"), "/", "-")+".log"), write, self, arguments...)
	if err != nil {
		return nil, "", err
	}
	go func() { <-p.exited; _ = write.Close() }()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		p.kill()
		return nil, "", fmt.Errorf("%s did not start: %w; see %s", arguments, err, p.log)
	}
	return p, strings.TrimSpace(line), nil
}

// processor is the processor time that the kernel has accounted to it so far.
func (p *process) processor() (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of a process: see clock_getcpuclockid(3)
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^p.command.Process.Pid)<<3|scheduled, &used); err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.command.Path, err)
	}
	return time.Duration(used.Nano()), nil
}

// resident is its memory now, in bytes.
func (p *process) resident() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has ended; see %s", p.command.Path, p.log)
}
