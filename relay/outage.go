package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// hdsd looks every probeInterval whether the control plane is back. Then the streams of clients end
// within reconnectWithin, each at another moment.
const (
	probeInterval   = 250 * time.Millisecond
	reconnectWithin = 500 * time.Millisecond
)

// errBack ends a stream that was served from memory.
var errBack = status.Error(codes.Unavailable, "the control plane behind the relay is back: connect again")

// outage counts the clients that are served from memory, and waits until the control plane can be
// reached again.
type outage struct {
	server *Server

	mu      sync.Mutex // guards the fields below
	clients int
	ended   chan struct{} // closed when the outage ends; nil: there is no outage
}

// enter counts one more client. The channel is closed when the control plane is back.
func (o *outage) enter(cause error) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients++
	if o.ended == nil {
		o.ended = make(chan struct{})
		o.server.options.Log.Warn().Str("event", "relay_upstream_lost").Err(cause).
			Msg("the control plane cannot be reached: its clients are served what they had, with health")
		ended := o.ended
		o.server.gate.Go(func() { o.watch(ended) })
	}
	return o.ended
}

func (o *outage) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients--
}

// watch waits until the control plane is back, or no client is left.
func (o *outage) watch(ended chan struct{}) {
	ticks := time.NewTicker(probeInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-o.server.ctx.Done():
			return
		}
		if o.end(ended, o.reachable()) {
			return
		}
	}
}

func (o *outage) reachable() bool {
	ctx, cancel := context.WithTimeout(o.server.ctx, 5*time.Second)
	defer cancel()
	_, leave, err := o.server.upstream.open(ctx, &method{fullName: "/" + aggregated + "/DeltaAggregatedResources"}, nil)
	if err == nil {
		leave(false)
	}
	return err == nil
}

// end ends the outage if the control plane is back or no client is left.
func (o *outage) end(ended chan struct{}, back bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !back && o.clients > 0 {
		return false
	}
	if o.ended = nil; back {
		o.server.options.Log.Info().Str("event", "relay_upstream_back").Int("clients", o.clients).
			Msg("the control plane can be reached again: clients reconnect")
	}
	close(ended)
	return true
}

// offline waits until the control plane is back, and then a random time, so that not all clients
// reconnect at once.
func (st *stream) offline(ctx context.Context, cause error) error {
	ended := st.server.outage.enter(cause)
	defer st.server.outage.leave()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil
	}
	wait := time.NewTimer(rand.N(reconnectWithin))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return errBack
}
