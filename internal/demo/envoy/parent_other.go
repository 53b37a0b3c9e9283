//go:build !linux

package envoy

import "syscall"

// endWithParent has no effect on this system: a child may outlive a killed parent.
func endWithParent() *syscall.SysProcAttr { return nil }
