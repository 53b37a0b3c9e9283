package envoy

import "syscall"

// endWithParent makes the kernel end a child when its parent ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
