//go:build !linux

package check

import (
	"context"
	"net"
	"time"
)

func dialServer(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2,
	}}
	return d.DialContext(ctx, "tcp", address)
}
