package demo

import (
	"net"
	"os"
	"path/filepath"
	"syscall"

	"hdsd/internal/demo/envoy"
)

// claimPorts tells whether this is the first demonstration on this machine,
// which alone may use the well-known ports: between finding a port free and
// listening on it, another one would take it.
func (s *stage) claimPorts() {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "hdsd-demo.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return // another user's
	}
	s.ends = append(s.ends, func() { file.Close() }) // which gives the lock back
	s.first = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// address gives a well-known address where it may be used and is free, else a
// free one.
func (s *stage) address(known string) (string, error) {
	if !s.first {
		return envoy.FreeAddress()
	}
	l, err := net.Listen("tcp", known)
	if err != nil {
		return envoy.FreeAddress()
	}
	return known, l.Close()
}
