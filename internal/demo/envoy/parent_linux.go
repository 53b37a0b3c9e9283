package envoy

import "syscall"

// EndWithParent has the kernel end a child when its parent is gone.
func EndWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
