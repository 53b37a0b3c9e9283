package check

import (
	"context"
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
	unhook  func() bool
	timer   *time.Timer
	request []byte // of HTTP, made once
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
			broke, ok := p.rest(ctx, wait)
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
	if p.check.http != nil {
		return p.probeHTTP(ctx)
	}
	return p.probeTCP(ctx), 0
}

// rest waits for the next probe and watches the kept connection meanwhile. An
// HTTP upstream may close it between probes; with TCP that is a failure
// (broke), as in Envoy. Not ok is the end of run.
func (p *prober) rest(ctx context.Context, wait time.Duration) (broke, ok bool) {
	p.timer.Reset(wait)
	if p.conn == nil {
		return false, p.sleep(ctx)
	}
	err := p.conn.SetReadDeadline(time.Now().Add(wait))
	if err == nil {
		err = p.listen()
	}
	if isTimeout(err) {
		return false, true
	}
	p.drop()
	if p.check.tcp != nil && !errors.Is(err, errTooLong) {
		return true, ctx.Err() == nil
	}
	return false, p.sleep(ctx)
}

// listen reads what nobody asked for until the deadline or the connection's
// end. On HTTP none is allowed; on TCP it may be the rest of an answer.
func (p *prober) listen() error {
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

// sleep waits for the timer and tells whether to go on.
func (p *prober) sleep(ctx context.Context) bool {
	select {
	case <-p.timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// connect makes the connection unless one was kept, and gives it until now
// plus the timeout.
func (p *prober) connect(ctx context.Context) (deadline time.Time, err error) {
	if p.conn != nil {
		deadline = time.Now().Add(p.check.policy.Timeout)
		return deadline, p.conn.SetDeadline(deadline)
	}
	if err := p.net.enter(ctx); err != nil {
		return deadline, err
	}
	// The wait for a free place is not the upstream's fault: the time starts
	// here.
	deadline = time.Now().Add(p.check.policy.Timeout)
	p.conn, err = p.net.dial(ctx, &p.host.spec, deadline)
	p.net.leave()
	if err != nil {
		p.conn = nil
		return deadline, err
	}
	conn := p.conn
	p.unhook = context.AfterFunc(ctx, func() {
		conn.Close() //nolint:errcheck // nothing to do about it
	})
	return deadline, conn.SetDeadline(deadline)
}

// drop closes the connection if there is one.
func (p *prober) drop() {
	if p.conn == nil {
		return
	}
	if p.unhook() {
		p.conn.Close() //nolint:errcheck // nothing to do about it
	}
	p.conn = nil
}

// failure gives the outcome that an error of the network stands for.
func (p *prober) failure(err error) Outcome {
	p.drop()
	if isTimeout(err) {
		return TimedOut
	}
	return NetworkFailure
}

// isTimeout tells our own deadlines from the kernel's ETIMEDOUT.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// statusOf is what a report says of several checks together: HEALTHY if all
// pass; else TIMEOUT if any timed out, as in Envoy.
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
