package check

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"hdsd/health"
)

// prober probes one host by one health check, on a goroutine of its own (run).
type prober struct {
	check *checkSpec
	host  *host
	net   *network
	stop  context.CancelFunc

	state State // guarded by host.mu

	// Owned by run.
	conn    net.Conn // kept between probes; nil for none
	raw     net.Conn // the same, under TLS
	http2   *http2Conn
	replies replyReader
	unhook  func() bool
	timer   *time.Timer
	request []byte // for HTTP and gRPC, made once
	small   [64]byte
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	defer p.drop()
	p.timer = time.NewTimer(p.check.policy.First(p.net.random))
	defer p.timer.Stop()
	if !p.sleep(ctx) {
		return
	}
	for {
		outcome, status := p.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		for {
			wait := p.host.record(p, outcome, status)
			broke, ok := p.awaitNext(ctx, wait)
			if !ok {
				return
			}
			if !broke {
				break
			}
			outcome, status = NetworkFailure, 0
		}
	}
}

func (p *prober) probe(ctx context.Context) (Outcome, int) {
	switch c := p.check; {
	case c.http != nil && c.http.v2:
		return p.probeHTTP2(ctx)
	case c.http != nil:
		return p.probeHTTP(ctx)
	case c.grpc != nil:
		return p.probeGRPC(ctx), 0
	case c.redis != nil:
		return p.probeRedis(ctx), 0
	default:
		return p.probeTCP(ctx), 0
	}
}

// awaitNext waits for the next probe, and watches the kept connection. An upstream may close
// it between probes. Only for TCP this is a failure (broke), as in Envoy. If not ok,
// run ends.
func (p *prober) awaitNext(ctx context.Context, wait time.Duration) (broke, ok bool) {
	p.timer.Reset(wait)
	if p.conn == nil {
		return false, p.sleep(ctx)
	}
	err := p.conn.SetDeadline(time.Now().Add(wait))
	if err == nil {
		err = p.listen()
	}
	if isTimeout(err) && !errors.Is(err, errBroken) {
		return false, true
	}
	p.drop()
	if p.check.tcp != nil && !errors.Is(err, errTooLong) {
		return true, ctx.Err() == nil
	}
	return false, p.sleep(ctx)
}

// listen reads unrequested data until the deadline or the connection's end. HTTP/1
// allows none; on TCP it may be the rest of a response.
func (p *prober) listen() error {
	switch {
	case p.http2 != nil:
		return p.http2.idle()
	case p.check.redis != nil:
		return p.idleRedis()
	}
	for total := 0; ; {
		n, err := p.conn.Read(p.small[:])
		total += n
		switch {
		case err != nil:
			return err
		case p.check.http != nil || total > maxTCPAnswer:
			return errTooLong
		}
	}
}

// sleep waits for the timer, and reports whether to continue.
func (p *prober) sleep(ctx context.Context) bool {
	select {
	case <-p.timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// errTooSlow reports a connection that Envoy would have abandoned before the check's
// timeout.
var errTooSlow = errors.New("the connection took too long")

// connect makes the connection unless one was kept. Its deadline is the timeout from
// now.
func (p *prober) connect(ctx context.Context) (deadline time.Time, err error) {
	timeout := p.check.policy.Timeout
	if p.conn != nil {
		deadline = time.Now().Add(timeout)
		return deadline, p.conn.SetDeadline(deadline)
	}
	if err := p.net.acquire(ctx); err != nil {
		return deadline, err
	}
	defer p.net.release()
	// The wait for a free place is not the upstream's fault, so the timeout starts
	// here.
	deadline = time.Now().Add(timeout)
	limit := deadline
	if p.check.redis != nil && timeout > redisConnect {
		limit = time.Now().Add(redisConnect)
	}
	if err := p.dial(ctx, limit); err != nil {
		if isTimeout(err) && limit != deadline {
			err = errTooSlow
		}
		return deadline, err
	}
	return deadline, p.conn.SetDeadline(deadline)
}

// dial makes a connection, with TLS if the check uses it.
func (p *prober) dial(ctx context.Context, deadline time.Time) error {
	dest := p.host.spec.target
	if p.check.redis != nil {
		dest = p.host.spec.traffic
	}
	conn, err := p.net.dial(ctx, dest, p.host.spec.source, deadline)
	if err != nil {
		return err
	}
	p.conn, p.raw = conn, conn
	p.unhook = context.AfterFunc(ctx, func() {
		conn.Close() //nolint:errcheck // nothing to do about it
	})
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if p.check.tls != nil {
		secure := tls.Client(conn, p.check.tls)
		p.conn = secure
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
	}
	if p.check.grpc != nil || p.check.http != nil && p.check.http.v2 {
		p.http2 = newHTTP2Conn(p.conn)
	}
	return nil
}

// drop closes the connection if there is one.
func (p *prober) drop() {
	if p.conn == nil {
		return
	}
	if p.unhook() {
		p.raw.Close() //nolint:errcheck // nothing to do about it; without a TLS alert, as in Envoy
	}
	p.conn, p.raw, p.http2, p.replies = nil, nil, nil, replyReader{}
}

// failure returns the outcome of a network error.
func (p *prober) failure(err error) Outcome {
	p.drop()
	if isTimeout(err) {
		return TimedOut
	}
	return NetworkFailure
}

// isTimeout distinguishes the checker's deadlines from the kernel's ETIMEDOUT.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// statusOf returns the status of several checks together: HEALTHY if all pass, else
// TIMEOUT if any timed out, as in Envoy.
func statusOf(probers []*prober) health.Status {
	if len(probers) == 0 {
		return health.Unhealthy
	}
	status := health.Healthy
	for _, p := range probers {
		switch p.state.Status() {
		case health.Timeout:
			return health.Timeout
		case health.Unhealthy:
			status = health.Unhealthy
		}
	}
	return status
}
