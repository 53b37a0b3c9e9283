package check

import (
	"context"
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall lacks.
const tcpUserTimeout = 0x12

// silence is how long reports may stay unacknowledged by TCP before the stream counts
// as dead.
const silence = 10 * time.Second

func dialServer(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 4, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			// Without it, the loss of a machine shows after a quarter of an hour. Ignore kernels
			// that do not support it.
			return c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silence.Milliseconds()))
			})
		},
	}
	return d.DialContext(ctx, "tcp", address)
}
