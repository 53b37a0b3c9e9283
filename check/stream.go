package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
)

// runner runs one stream after the other. One goroutine owns it.
type runner struct {
	options  *Options
	pool     *pool
	work     sync.WaitGroup // the stream's reader
	server   string         // of the current stream
	current  string         // the specifier in use, for comparison
	interval time.Duration  // between its reports
	lost     bool           // the coordinator is lost, and that is logged
}

// stream is the client's side of StreamHealthCheck.
type stream = healthv3.HealthDiscoveryService_StreamHealthCheckClient

// incoming is the output of a stream's reader.
type incoming struct {
	specifiers chan *healthv3.HealthCheckSpecifier // unbuffered: flow control slows the coordinator
	ended      chan error                          // one error at the end, buffered
}

// follow applies specifiers from a stream and reports, until the stream ends. The
// caller must then end its context, so that the reader ends, and wait for it.
func (r *runner) follow(ctx context.Context, s stream) (heard bool, err error) {
	in := incoming{make(chan *healthv3.HealthCheckSpecifier), make(chan error, 1)}
	r.work.Go(func() { receive(ctx, s, in) })
	if err := s.Send(firstMessage(r.options)); err != nil {
		return false, in.reason(err)
	}
	interval := time.Duration(-1) // not reporting yet
	ticker := time.NewTicker(longest)
	defer ticker.Stop()
	var due <-chan time.Time // nil is never
	for {
		select {
		case m := <-in.specifiers:
			heard = true
			r.logRecovered()
			if r.accept(m) && interval != r.interval {
				interval = r.interval
				due = restart(ticker, interval)
			}
		case <-due:
			if err := s.Send(r.pool.report()); err != nil {
				return heard, in.reason(err)
			}
		case err := <-in.ended:
			return heard, err
		}
	}
}

// logRecovered logs that there is a stream to the coordinator after attempts that failed.
func (r *runner) logRecovered() {
	if r.lost {
		r.lost = false
		r.options.Log.Info().Str("event", "coordinator_found").Str("server", r.server).Msg("connected to the coordinator")
	}
}

// restart sets the interval of the ticker; 0 is never.
func restart(ticker *time.Ticker, interval time.Duration) <-chan time.Time {
	if interval == 0 {
		return nil
	}
	ticker.Reset(max(interval, time.Millisecond))
	return ticker.C
}

// receive passes on messages until the stream or ctx ends.
func receive(ctx context.Context, s stream, in incoming) {
	for {
		m, err := s.Recv()
		if err != nil {
			in.ended <- err
			return
		}
		select {
		case in.specifiers <- m:
		case <-ctx.Done():
			in.ended <- ctx.Err()
			return
		}
	}
}

// reason returns the error of the stream after Send failed, which only says that the
// stream ended.
func (in incoming) reason(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("send: %w", err)
	}
	for {
		select {
		case <-in.specifiers: // too late to apply it
		case err := <-in.ended:
			return err
		}
	}
}

// accept applies a specifier, or reports false; then the previous one stays in use.
func (r *runner) accept(m *healthv3.HealthCheckSpecifier) bool {
	text, err := stable(m)
	if err == nil && text == r.current && text != "" {
		return true
	}
	var s *specifier
	if err == nil {
		s, err = parseSpecifier(m)
	}
	if err != nil {
		r.options.Log.Error().Str("event", "specifier_rejected").Err(err).Msg("the specifier is rejected; the previous one stays in use")
		return false
	}
	r.pool.apply(s)
	r.current, r.interval = text, s.interval
	r.options.Log.Info().Str("event", "specifier_followed").Int("clusters", len(s.clusters)).Dur("interval", s.interval).Msg("follows a new specifier")
	return true
}
