package envoy

import "syscall"

// EndWithParent makes the kernel end a child when its parent ends.
func EndWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
