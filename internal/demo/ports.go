package demo

import (
	"net"
	"os"
	"path/filepath"
	"syscall"

	"hdsd/internal/demo/envoy"
)

// claimPorts checks whether this is the first demonstration on this machine. Only the first may
// use the well-known ports. Another one could lose a free port before it listens.
func (s *stage) claimPorts() {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "hdsd-demo.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return // another user's
	}
	s.ends = append(s.ends, func() { file.Close() }) // which releases the lock
	s.first = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// address returns a well-known address if it is allowed and free, else a free one.
func (s *stage) address(fixed string) (string, error) {
	if !s.first {
		return envoy.FreeAddress()
	}
	l, err := net.Listen("tcp", fixed)
	if err != nil {
		return envoy.FreeAddress()
	}
	return fixed, l.Close()
}
