package replicas

import (
	"context"
	"errors"
	"sync"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// checker is a simulated checker. It connects to its own replica, or else to the next one that takes it.
type checker struct {
	id, zone string
	world    *scale.World
	servers  []string      // gRPC addresses, that of its own replica first
	changed  chan struct{} // asks for a report now

	mu     sync.Mutex
	stream grpc.ClientStream  // nil without a specifier; guarded by mu
	report *scale.Report      // that follows the latest specifier; guarded by mu
	end    context.CancelFunc // ends the stream; guarded by mu
	guest  bool               // the stream is not to the checker's own replica; guarded by mu
}

// lively lets a checker notice that a connection carries nothing any more, as the bootstraps of Envoys do.
var lively = grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second})

// run connects the checker, and reports every second, until ctx ends.
func (c *checker) run(ctx context.Context, failed func(error)) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-c.changed:
			}
			c.tell()
		}
	})
	for ctx.Err() == nil {
		for i, server := range c.servers {
			if c.converse(ctx, server, i > 0, failed) { // a stream that was open: its own replica is the next
				break
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// converse holds a stream until its end, and reports whether it got a specifier.
func (c *checker) converse(ctx context.Context, server string, guest bool, failed func(error)) (took bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(3*time.Second, cancel) // the server does not answer
	defer silence.Stop()
	stream, hangUp, err := scale.Dial(ctx, server, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName, lively)
	if err != nil {
		return false
	}
	defer hangUp() //nolint:errcheck // the stream has ended
	defer c.set(nil, nil, nil, false)
	if err := stream.SendMsg(scale.Hello(c.id, c.zone)); err != nil {
		return false
	}
	for {
		var message wire.Bytes
		if err := stream.RecvMsg(&message); err != nil {
			return took
		}
		var s healthv3.HealthCheckSpecifier
		err := proto.Unmarshal(message, &s)
		report, err2 := scale.NewReport(c.world, &s)
		if err = errors.Join(err, err2); err != nil {
			failed(err)
			return took
		}
		silence.Stop()
		took = true
		c.set(stream, report, cancel, guest)
		c.wake()
	}
}

func (c *checker) set(stream grpc.ClientStream, report *scale.Report, end context.CancelFunc, guest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream, c.report, c.end, c.guest = stream, report, end, guest
}

// wake asks for a report now. It does not wait.
func (c *checker) wake() {
	select {
	case c.changed <- struct{}{}:
	default: // asked already
	}
}

// tell reports how the endpoints are. It waits while the replica is paused.
func (c *checker) tell() {
	c.mu.Lock()
	stream, report := c.stream, c.report
	c.mu.Unlock()
	if stream != nil && report.Len() > 0 {
		message := wire.Bytes(report.Next())
		_ = stream.SendMsg(&message) // converse notices the end of the stream
	}
}

// goHome ends a stream to another replica than the checker's own.
func (c *checker) goHome() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guest && c.end != nil {
		c.end()
	}
}
