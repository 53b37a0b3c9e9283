package eds

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"

	"hdsd/health"
	"hdsd/publish"
)

// crowd is clients of one configuration, which come and go while what they ask for changes.
type crowd struct {
	t      *testing.T
	server *Server
	conn   *grpc.ClientConn
	names  []string
	still  chan struct{} // closed when clients stay
	calm   chan struct{} // closed when each assignment changes for the last time
}

// TestACrowdEndsWithTheLatest: over real streams, while health changes and resources go and
// come back, clients come, leave, come back with what they have, refuse, give up, and ask again. Each
// ends with the latest of everything, and nothing is left of them.
func TestACrowdEndsWithTheLatest(t *testing.T) {
	c := &crowd{t: t, server: NewServer(Options{MaxResponseBytes: 400, fewestShared: 1}), names: manyNames(40), still: make(chan struct{}), calm: make(chan struct{})}
	conn, stop := serve(t, c.server.Register)
	c.conn = conn
	for i := range c.names {
		c.publish(i, 1)
	}
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			if i%4 == 0 {
				c.state()
			} else {
				c.delta()
			}
		})
	}
	c.change(rounds(1500, 4000))
	close(c.still)
	c.change(rounds(1500, 4000))
	close(c.calm)
	for i := range c.names {
		c.publish(i, 4) // so that clients that wait hear once more
	}
	clients.Wait()
	conn.Close()
	c.server.Close()
	stop()
	all := c.server.published.assignments
	equal(t, "groups that are left", len(all.groups), 0)
	for _, s := range all.slots {
		if len(s.watches)+len(s.positions) > 0 || s.resource == nil {
			t.Errorf("left of %s: %d watches, %d positions", s.name, len(s.watches), len(s.positions))
		}
	}
}

func (c *crowd) publish(i, endpoints int) {
	c.server.Update(publish.Update{Assignments: []publish.Assignment{assignment(c.names[i], health.EndpointID(10*i), endpoints)}})
}

// change makes some changes.
func (c *crowd) change(some int) {
	for range some {
		i := rand.IntN(len(c.names))
		switch rand.IntN(20) {
		case 0:
			c.server.Update(publish.Update{RemovedAssignments: c.names[i : i+1]})
			time.Sleep(time.Millisecond / 10)
			c.publish(i, 1) // only of what exists there are groups
		case 1, 2:
			c.publish(i, 1+rand.IntN(3))
		case 3:
			time.Sleep(time.Millisecond)
		default:
			c.server.setHealth(health.EndpointID(10*i), health.Status(1+rand.IntN(5)))
		}
	}
}

// published is what there is.
func (c *crowd) published() map[string]string {
	all := map[string]string{}
	for _, s := range c.server.published.assignments.allSlots() {
		if f := s.current(); f != nil {
			all[s.name] = summary(resourcev3.EndpointType, f.bytes[f.value:])
		}
	}
	return all
}

// latest reports whether a client has everything, once there is calm.
func (c *crowd) latest(has map[string]string, known map[string]bool) bool {
	select {
	case <-c.calm:
		return len(known) == len(c.names) && maps.Equal(has, c.published())
	default:
		return false
	}
}

// stay is how long a client keeps its stream: at last, until it has everything.
func (c *crowd) stay() (ctx context.Context, cancel func(), last bool) {
	select {
	case <-c.still:
		ctx, cancel = context.WithTimeout(c.t.Context(), 30*time.Second)
		return ctx, cancel, true
	default:
		ctx, cancel = context.WithTimeout(c.t.Context(), time.Duration(1+rand.IntN(200))*time.Millisecond)
		return ctx, cancel, false
	}
}

// delta is a client that comes back with what it has, or without.
func (c *crowd) delta() {
	has, versions := map[string]string{}, map[string]string{}
	for over := false; !over; {
		if rand.IntN(3) == 0 {
			clear(has)
			clear(versions)
		}
		ctx, cancel, last := c.stay()
		over = last
		ended := c.deltaStream(ctx, has, versions, last)
		if cancel(); last && !ended {
			c.t.Errorf("a client has %v of %v", has, c.published())
		}
	}
}

// deltaStream reports whether the client has the latest.
func (c *crowd) deltaStream(ctx context.Context, has, versions map[string]string, last bool) bool {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c.conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return false
	}
	m := subscribe(resourcev3.EndpointType, c.names...)
	m.InitialResourceVersions = maps.Clone(versions)
	_ = stream.Send(m) // Recv tells of an error
	known := map[string]bool{}
	for name := range has {
		known[name] = true
	}
	for !c.latest(has, known) {
		r, err := stream.Recv()
		if err != nil {
			return c.latest(has, known)
		}
		if !last && rand.IntN(30) == 0 {
			_ = stream.Send(nack(r, "no"))
			continue
		}
		for _, each := range r.GetResources() {
			has[each.GetName()], versions[each.GetName()] = summary(resourcev3.EndpointType, each.GetResource().GetValue()), each.GetVersion()
			known[each.GetName()] = true
		}
		for _, name := range r.GetRemovedResources() {
			delete(has, name)
			delete(versions, name)
			known[name] = true
		}
		a := ack(r)
		switch name := c.names[rand.IntN(len(c.names))]; rand.IntN(20) {
		case 0:
			a.ResourceNamesSubscribe = []string{name}
		case 1: // it gives the name up, and requests it again
			delete(has, name)
			delete(versions, name)
			delete(known, name)
			_ = stream.Send(unsubscribe(resourcev3.EndpointType, name))
			a.ResourceNamesSubscribe = []string{name}
		}
		_ = stream.Send(a)
	}
	return true
}

// state is a client that begins anew each time.
func (c *crowd) state() {
	for over := false; !over; {
		ctx, cancel, last := c.stay()
		over = last
		if ended := c.stateStream(ctx, last); !ended && last {
			c.t.Error("a client lacks something")
		}
		cancel()
	}
}

// stateStream reports whether the client has the latest.
func (c *crowd) stateStream(ctx context.Context, last bool) bool {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c.conn).StreamAggregatedResources(ctx)
	if err != nil {
		return false
	}
	_ = stream.Send(want(resourcev3.EndpointType, c.names...)) // Recv tells of an error
	has, known := map[string]string{}, map[string]bool{}
	for !c.latest(has, known) {
		r, err := stream.Recv()
		if err != nil {
			return c.latest(has, known)
		}
		if !last && rand.IntN(30) == 0 {
			_ = stream.Send(nackState(r, "no", c.names...))
			continue
		}
		for _, each := range r.GetResources() {
			name, value := assignmentNameOf(each.GetValue()), summary(resourcev3.EndpointType, each.GetValue())
			if has[name], known[name] = value, true; value == "" {
				delete(has, name)
			}
		}
		if i := rand.IntN(20 * len(c.names)); i < len(c.names) { // it gives a name up, and requests it again
			delete(has, c.names[i])
			delete(known, c.names[i])
			_ = stream.Send(ackState(r, slices.Delete(slices.Clone(c.names), i, i+1)...))
		}
		_ = stream.Send(ackState(r, c.names...))
	}
	return true
}
