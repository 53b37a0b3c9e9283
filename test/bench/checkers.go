package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// checker is a simulated one that reports when it is told to, and every interval.
type checker struct {
	id, zone, server string
	world            *scale.World

	mu     sync.Mutex // guards the fields below, and what is sent
	stream grpc.ClientStream
	report *scale.Report // of the latest specifier; nil without a stream
	same   wire.Bytes    // what was sent while nothing changed
	lied   bool          // whether the last report was not the truth
	first  time.Time     // of the first report since the field was cleared
}

// crew is all checkers of a coordinator.
type crew struct {
	world    *scale.World
	interval time.Duration
	all      []*checker
	failed   atomic.Pointer[error] // the first thing that cannot happen

	cancel  context.CancelFunc
	running sync.WaitGroup
}

const zones = 4

// newCrew connects so many checkers until leave. They connect again when hdsd is back.
func newCrew(server string, w *scale.World, checkers int, interval time.Duration) *crew {
	return spreadCrew([]string{server}, w, checkers, interval)
}

// spreadCrew is newCrew with the checkers spread over several servers.
func spreadCrew(servers []string, w *scale.World, checkers int, interval time.Duration) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crew{world: w, interval: interval, cancel: cancel}
	for i := range checkers {
		k := &checker{id: fmt.Sprintf("checker-%04d", i), zone: string(rune('a' + i%zones)), server: servers[i%len(servers)], world: w}
		c.all = append(c.all, k)
		c.running.Go(func() {
			for ctx.Err() == nil {
				_ = c.converse(ctx, k) // hdsd may be down
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
		c.running.Go(func() { c.tick(ctx, k, time.Duration(i)*interval/time.Duration(checkers)) })
	}
	return c
}

func (c *crew) leave() { c.cancel(); c.running.Wait() }

// tick reports every interval.
func (c *crew) tick(ctx context.Context, k *checker, phase time.Duration) {
	timer := time.NewTimer(phase)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(c.interval)
			_, _ = k.send() // converse sees that the stream ended
		}
	}
}

// converse is one stream.
func (c *crew) converse(ctx context.Context, k *checker) error {
	stream, hangUp, err := scale.Dial(ctx, k.server, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
	if err != nil {
		return err
	}
	defer func() { k.assign(nil, nil); _ = hangUp() }()
	if err := stream.SendMsg(scale.Hello(k.id, k.zone)); err != nil {
		return err
	}
	for {
		var message wire.Bytes
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		var s healthv3.HealthCheckSpecifier
		err := proto.Unmarshal(message, &s)
		if err == nil {
			var r *scale.Report
			if r, err = scale.NewReport(k.world, &s); err == nil {
				k.assign(stream, r)
				_, err = k.send()
			}
		}
		if err != nil {
			c.failed.CompareAndSwap(nil, &err)
			return err
		}
	}
}

func (k *checker) assign(stream grpc.ClientStream, r *scale.Report) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stream, k.report, k.same = stream, r, nil
}

var errUnassigned = errors.New("a checker has nothing to report")

// send reports how things are, and returns how many entries that took.
func (k *checker) send() (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		return 0, errUnassigned
	}
	return k.report.Len(), k.writeLocked(k.report.Next())
}

// endpoints is what it has to check.
func (k *checker) endpoints() (found []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.report == nil {
		return nil
	}
	for i := range k.report.Len() {
		found = append(found, k.report.Endpoint(i))
	}
	return found
}

// assigned is how many endpoints it has to check.
func (k *checker) assigned() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.report == nil {
		return 0
	}
	return k.report.Len()
}

// write sends a report that bytes gave.
func (k *checker) write(report wire.Bytes) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		return errUnassigned
	}
	return k.writeLocked(report)
}

func (k *checker) writeLocked(report wire.Bytes) error {
	k.same = nil
	if k.first.IsZero() {
		k.first = time.Now()
	}
	return k.stream.SendMsg(&report)
}

// bytes is its report as it is now.
func (k *checker) bytes() wire.Bytes {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.report == nil {
		return nil
	}
	return k.report.Next()
}

// sendAll has all that check anything report now, at once.
func (c *crew) sendAll() error {
	var group sync.WaitGroup
	errs := make([]error, len(c.all))
	for i, k := range c.all {
		if k.assigned() > 0 {
			group.Go(func() { _, errs[i] = k.send() })
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkersOf tells who checks each endpoint.
func (c *crew) checkersOf() [][]*checker {
	of := make([][]*checker, c.world.Size())
	for _, k := range c.all {
		for _, e := range k.endpoints() {
			of[e] = append(of[e], k)
		}
	}
	return of
}

// settle waits until each endpoint is checked so often and is well.
func (c *crew) settle(h *hdsd, redundancy int) error {
	return until("every endpoint to be checked and healthy", 100*time.Millisecond, func() (bool, error) {
		if err := c.failed.Load(); err != nil {
			return false, *err
		}
		for _, of := range c.checkersOf() {
			if len(of) != redundancy {
				return false, nil
			}
		}
		healthy, err := h.healthy()
		return healthy == c.world.Size(), err
	})
}
