package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// probeInterval is how often hdsd looks whether the control plane is back; reconnectWithin
// is the time over which clients then reconnect.
const (
	probeInterval   = 250 * time.Millisecond
	reconnectWithin = 500 * time.Millisecond
)

// errBack ends the streams that were served from memory.
var errBack = status.Error(codes.Unavailable, "the control plane behind the relay is back: connect again")

// outage is the time in which the control plane cannot be reached and clients are served
// from memory.
type outage struct {
	server *Server

	mu      sync.Mutex // guards what follows
	clients int
	over    chan struct{} // nil: nobody looks
}

// enter begins to serve a client. The channel is closed when the control plane is back.
func (o *outage) enter(why error) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients++
	if o.over == nil {
		o.over = make(chan struct{})
		o.server.options.Log.Warn().Str("event", "relay_upstream_lost").Err(why).
			Msg("the control plane cannot be reached: its clients are served what they had, with health")
		over := o.over
		o.server.gate.Go(func() { o.look(over) })
	}
	return o.over
}

func (o *outage) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients--
}

// look waits until the control plane is back, or no client is left.
func (o *outage) look(over chan struct{}) {
	ticks := time.NewTicker(probeInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-o.server.ending.Done():
			return
		}
		if o.end(over, o.reachable()) {
			return
		}
	}
}

func (o *outage) reachable() bool {
	ctx, cancel := context.WithTimeout(o.server.ending, 5*time.Second)
	defer cancel()
	_, leave, err := o.server.upstream.open(ctx, &method{upstream: "/" + aggregated + "/DeltaAggregatedResources"}, nil)
	if err == nil {
		leave(false)
	}
	return err == nil
}

// end ends the outage if the control plane is back or no client is left.
func (o *outage) end(over chan struct{}, back bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !back && o.clients > 0 {
		return false
	}
	if o.over = nil; back {
		o.server.options.Log.Info().Str("event", "relay_upstream_back").Int("clients", o.clients).
			Msg("the control plane can be reached again: clients reconnect")
	}
	close(over)
	return true
}

// offline waits until the control plane is back, and then some, so that not all clients
// reconnect at once.
func (st *stream) offline(ctx context.Context, why error) error {
	over := st.server.outage.enter(why)
	defer st.server.outage.leave()
	select {
	case <-over:
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
