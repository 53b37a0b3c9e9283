package disk

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launcherVariable makes Main a launcher.
const launcherVariable = "HDSD_TEST_DISK"

// Main puts the filter in place and becomes the traced command, if Start started this
// process. Otherwise it returns at once.
func Main() {
	if os.Getenv(launcherVariable) == "" {
		return
	}
	if err := os.Unsetenv(launcherVariable); err == nil {
		err = launch()
		fmt.Fprintln(os.Stderr, "launch:", err)
	}
	os.Exit(1)
}

// launch becomes the command of the arguments: its path, and its own arguments.
func launch() error {
	runtime.LockOSThread() // the filter is the thread's, and stays with what it becomes
	listener, err := install()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return err
	}
	if err := unix.Close(listener); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	return syscall.Exec(os.Args[1], os.Args[2:], os.Environ())
}

// install has the kernel tell of all calls that write, and returns who is told.
func install() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	filter := program()
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	got, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return 0, errno
	}
	return int(got), nil
}

// Where struct seccomp_data has the number of the call, and the low half of an argument.
const numberAt = 0

func argumentAt(i uint32) uint32 { return 16 + 8*i }

// program selects the calls: all that write at a place, sync, cut off or change names;
// prints to standard output; and what may make a file.
func program() []unix.SockFilter {
	const load, equal, has, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	tell, allow := unix.SockFilter{Code: end, K: unix.SECCOMP_RET_USER_NOTIF}, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW}
	all := []unix.SockFilter{{Code: load, K: numberAt}}
	for _, number := range []uint32{
		unix.SYS_PWRITE64, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_MKDIRAT,
		unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT,
	} {
		all = append(all, unix.SockFilter{Code: equal, Jf: 1, K: number}, tell)
	}
	return append(all,
		unix.SockFilter{Code: equal, Jf: 4, K: unix.SYS_WRITE},
		unix.SockFilter{Code: load, K: argumentAt(0)}, unix.SockFilter{Code: equal, Jf: 1, K: 1}, tell, allow,
		unix.SockFilter{Code: equal, Jf: 3, K: unix.SYS_OPENAT},
		unix.SockFilter{Code: load, K: argumentAt(2)}, unix.SockFilter{Code: has, Jf: 1, K: unix.O_CREAT}, tell, allow)
}

// control calls the listener, and reports whether that worked.
func control[T any](listener *os.File, request uintptr, with *T) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, listener.Fd(), request, uintptr(unsafe.Pointer(with)))
	return errno == 0
}
