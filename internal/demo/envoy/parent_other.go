//go:build !linux

package envoy

import "syscall"

// EndWithParent has no effect on this system: a child may outlive a killed parent.
func EndWithParent() *syscall.SysProcAttr { return nil }
