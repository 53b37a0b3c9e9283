package check

import (
	"context"
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall lacks.
const tcpUserTimeout = 0x12

// silence is how long the coordinator's machine may leave reports
// unacknowledged before the stream counts as dead.
const silence = 10 * time.Second

func dialServer(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 4, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			// Without it, a lost machine is noticed after a quarter of an
			// hour. A kernel that does not know it: then so be it.
			return c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silence.Milliseconds()))
			})
		},
	}
	return d.DialContext(ctx, "tcp", address)
}
