//go:build !linux

package envoy

import "syscall"

// EndWithParent has no equivalent here: a child may outlive a parent that is
// killed.
func EndWithParent() *syscall.SysProcAttr { return nil }
