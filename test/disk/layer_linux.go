package disk

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Disk is what stands between a process and the files below a folder.
type Disk struct {
	t        testing.TB
	folder   string
	listener *os.File
	ended    chan struct{}

	mu      sync.Mutex
	fault   func(Op) (time.Duration, error)
	ops     []Op
	unnamed []unnamed
}

// unnamed is an operation that makes a file, until it has.
type unnamed struct {
	op   int
	path string
}

// Start starts a command whose writes below a folder go through a Disk. What it prints is
// recorded too. The test waits for it.
func Start(t testing.TB, command *exec.Cmd, folder string) *Disk {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	here, there := os.NewFile(uintptr(ends[0]), "here"), os.NewFile(uintptr(ends[1]), "there")
	defer here.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command.Args = append([]string{self, command.Path}, command.Args...)
	command.Path = self
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env, launcherVariable+"=1")
	command.ExtraFiles = append([]*os.File{there}, command.ExtraFiles...)
	err = errors.Join(command.Start(), there.Close())
	if err != nil {
		t.Fatal(err)
	}
	d := &Disk{t: t, folder: folder, ended: make(chan struct{})}
	if d.listener, err = receive(here); err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		t.Fatalf("this kernel gives no notice of system calls: %v", err)
	}
	go d.serve()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-d.ended
		_ = d.listener.Close()
	})
	return d
}

// receive takes over the descriptor that the launcher sends.
func receive(from *os.File) (*os.File, error) {
	connection, err := net.FileConn(from)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := connection.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(errors.New("the launcher sent nothing"), err)
	}
	descriptors, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(descriptors) == 0 {
		return nil, errors.Join(errors.New("the launcher sent no descriptor"), err)
	}
	return os.NewFile(uintptr(descriptors[0]), "listener"), nil
}

// SetFault has f decide about each operation from now on: how long it takes, and whether it
// fails. Nil ends that.
func (d *Disk) SetFault(f func(Op) (time.Duration, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Ops waits until the process has ended and returns what it did.
func (d *Disk) Ops() []Op {
	<-d.ended
	return d.ops
}

// notice is struct seccomp_notif.
type notice struct {
	id   uint64
	pid  uint32
	_    uint32 // flags
	nr   int32
	_    uint32 // architecture
	_    uint64 // where the call is
	args [6]uint64
}

// verdict is struct seccomp_notif_resp.
type verdict struct {
	id    uint64
	_     int64 // what the call returns
	errno int32
	flags uint32
}

// goOn has the kernel carry out the call.
const goOn = 1

// serve answers the kernel until the process has ended.
func (d *Disk) serve() {
	defer close(d.ended)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for {
		polled := []unix.PollFd{{Fd: int32(d.listener.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(polled, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if polled[0].Revents&unix.POLLIN == 0 {
			if polled[0].Revents != 0 {
				return
			}
			continue
		}
		var n notice
		if !control(d.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, &n) {
			continue // the thread is gone
		}
		delay, failure := d.take(&n)
		answer := verdict{id: n.id, flags: goOn}
		if errno, ok := errors.AsType[unix.Errno](failure); ok {
			answer = verdict{id: n.id, errno: -int32(errno)}
		}
		waiting.Go(func() {
			time.Sleep(delay)
			control(d.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, &answer)
		})
		if delay == 0 {
			waiting.Wait()
		}
	}
}

// take records a call, and says how long it takes and whether it fails.
func (d *Disk) take(n *notice) (time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name()
	op, path, ok := d.read(n)
	if !ok {
		return 0, nil
	}
	var delay time.Duration
	if d.fault != nil {
		delay, op.Err = d.fault(op)
	}
	if op.Kind == Create || op.Kind == Mkdir {
		d.unnamed = append(d.unnamed, unnamed{len(d.ops), path})
	}
	d.ops = append(d.ops, op)
	return delay, op.Err
}

// name fills in which files were made.
func (d *Disk) name() {
	for _, u := range d.unnamed {
		d.ops[u.op].File = inode(u.path)
	}
	d.unnamed = nil
}

// read turns a call into an operation, or returns false if it is none on the folder.
func (d *Disk) read(n *notice) (op Op, path string, ok bool) {
	proc := fmt.Sprintf("/proc/%d", n.pid)
	descriptor := func(number uint64) (string, bool) {
		link := fmt.Sprintf("%s/fd/%d", proc, int32(number))
		to, err := os.Readlink(link)
		op.File = inode(link)
		return to, err == nil && d.below(to)
	}
	name := func(folder, text uint64) string {
		path := text0(proc, text)
		if !filepath.IsAbs(path) {
			at := proc + "/cwd"
			if int32(folder) != unix.AT_FDCWD {
				at = fmt.Sprintf("%s/fd/%d", proc, int32(folder))
			}
			at, _ = os.Readlink(at)
			path = filepath.Join(at, path)
		}
		return filepath.Clean(path)
	}
	switch uintptr(n.nr) {
	case unix.SYS_WRITE:
		op = Op{Kind: Print, Data: memory(proc, n.args[1], n.args[2])}
		ok = true
	case unix.SYS_PWRITE64:
		op.Kind, op.Offset = Write, int64(n.args[3])
		if path, ok = descriptor(n.args[0]); ok {
			op.Data = memory(proc, n.args[1], n.args[2])
		}
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		op.Kind = Sync
		path, ok = descriptor(n.args[0])
	case unix.SYS_FTRUNCATE:
		op.Kind, op.Offset = Truncate, int64(n.args[1])
		path, ok = descriptor(n.args[0])
	case unix.SYS_OPENAT:
		path = name(n.args[0], n.args[1])
		op = Op{Kind: Create, Folder: inode(filepath.Dir(path)), Name: filepath.Base(path)}
		ok = d.below(path) && inode(path) == 0
	case unix.SYS_MKDIRAT:
		path = name(n.args[0], n.args[1])
		op = Op{Kind: Mkdir, Folder: inode(filepath.Dir(path)), Name: filepath.Base(path)}
		ok = d.below(path) && inode(path) == 0
	case unix.SYS_UNLINKAT:
		path = name(n.args[0], n.args[1])
		op = Op{Kind: Remove, Folder: inode(filepath.Dir(path)), Name: filepath.Base(path), File: inode(path)}
		ok = d.below(path) && op.File != 0
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		from := name(n.args[0], n.args[1])
		path = name(n.args[2], n.args[3])
		op = Op{Kind: Link, Folder: inode(filepath.Dir(path)), Name: filepath.Base(path), File: inode(from)}
		if uintptr(n.nr) != unix.SYS_LINKAT {
			op.Kind, op.FromFolder, op.FromName = Rename, inode(filepath.Dir(from)), filepath.Base(from)
		}
		ok = d.below(path) && op.File != 0
	}
	return op, path, ok
}

func (d *Disk) below(path string) bool { return strings.HasPrefix(path+"/", d.folder+"/") }

// inode returns the number of a file, or 0 if there is none.
func inode(path string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0
	}
	return stat.Ino
}

// memory reads the memory of a process.
func memory(proc string, at, size uint64) []byte {
	file, err := os.Open(proc + "/mem")
	if err != nil {
		return nil
	}
	defer file.Close()
	data := make([]byte, size)
	read, _ := file.ReadAt(data, int64(at))
	return data[:read]
}

// text0 reads a string that ends with a zero.
func text0(proc string, at uint64) string {
	data := memory(proc, at, unix.PathMax)
	text, _, _ := strings.Cut(string(data), "\x00")
	return text
}
