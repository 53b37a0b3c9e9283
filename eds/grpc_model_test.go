package eds

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/publish"
)

// agents are the user agents in turn of the streams of one node.
var agents = []string{"envoy", "gRPC Go", "", "gRPC C-core"}

// TestAClientThatChangesItsAgentConverges plays histories to clients of one node id that have
// another user agent on each stream, and name another one in later requests, too: what they
// get last is in the form of the agent that began the stream.
func TestAClientThatChangesItsAgentConverges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			kind := rapid.SampledFrom([]int{0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16}).Draw(r, "kind")
			return step{kind: kind, name: rapid.IntRange(0, namesInPlay-1).Draw(r, "name"), value: rapid.IntRange(0, 99).Draw(r, "value")}
		}), 0, 60).Draw(r, "steps")
		var problems []error
		inBubble(t, Options{MaxResponseBytes: 400}, func(_ *testing.T, b *bench) {
			delta, state := newDeltaModel(b), newStateModel(b)
			delta.agents, state.agents = agents, append(agents[1:], agents[0])
			clients := []model{delta, state}
			w := play(steps, []target{ours{b.server}}, clients)
			for i, in := range []*asks{&delta.asks, &state.asks} {
				want := map[string]string{}
				for name, statuses := range w {
					if in.interested(name) {
						want[name] = in.form(len(statuses)) + w.summary(name)
					}
				}
				if got := clients[i].has(); !maps.Equal(got, want) {
					problems = append(problems, fmt.Errorf("%T as %q has %v, want %v", clients[i], in.agent(), got, want))
				}
				clients[i].close()
			}
		})
		for _, err := range problems {
			r.Error(err)
		}
	})
}

// TestGRPCClientsShareEachFrame: a change of one endpoint makes one frame for all gRPC clients, by
// delta and state of the world, and none of other assignments.
func TestGRPCClientsShareEachFrame(t *testing.T) {
	const clients, assignments = 20, 10
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		names := make([]string, assignments)
		for i := range names {
			names[i] = fmt.Sprint("n", i)
		}
		b.publish(names...)
		receive := make([]func(), 0, 2*clients)
		for i := range clients {
			agent := fmt.Sprint("gRPC ", i%4)
			s, d := b.state(), b.delta()
			defer s.cancel()
			defer d.cancel()
			s.send(wantAs(agent, names...))
			m := subscribe(resourcev3.EndpointType, names...)
			m.Node.UserAgentName = agent
			d.send(m)
			receive = append(receive, func() { s.send(ackState(s.next(), names...)) }, func() { d.send(ack(d.next())) })
		}
		// made returns the frames that watches are sent, by name.
		made := func() map[string][]*frame {
			all := map[string][]*frame{}
			for _, each := range receive {
				each()
			}
			synctest.Wait()
			for _, name := range names {
				s := b.server.published.assignments.slots[name]
				equal(t, "watches", len(s.watches), 2*clients)
				for _, w := range s.watches {
					if f := w.current(); !slices.Contains(all[name], f) {
						all[name] = append(all[name], f)
					}
				}
				equal(t, "frames of "+name, len(all[name]), 1)
			}
			return all
		}
		before := made()
		completed := b.server.published.assignments.slots["n3"].resource.forGRPC
		b.server.setHealth(3, health.Unhealthy)
		after := made()
		for _, name := range names {
			if same := before[name][0] == after[name][0]; same != (name != "n3") {
				t.Errorf("the frame of %s is the same after a change of n3: %t", name, same)
			}
		}
		if b.server.published.assignments.slots["n3"].resource.forGRPC != completed {
			t.Error("a change of health completes the assignment anew")
		}
		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("n4", 4, 2)}})
		last := made()
		for _, name := range names {
			if same := last[name][0] == after[name][0]; same != (name != "n4") {
				t.Errorf("the frame of %s is the same after other endpoints of n4: %t", name, same)
			}
		}
	})
}

// TestAnotherAgentGetsItsOwnForm: what a client has from a stream of another user agent is not
// what it asks for, though nothing has changed since.
func TestAnotherAgentGetsItsOwnForm(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publish("a")
		var had map[string]string
		for i, agent := range agents {
			p := b.delta()
			m := subscribe(resourcev3.EndpointType, "a")
			m.Node.UserAgentName, m.InitialResourceVersions = agent, had
			p.send(m)
			r := p.next()
			want := ` "a":HE`
			if i%2 == 1 {
				want = ` "a"*1:HE`
			}
			equal(t, "as "+agent, localities(r.GetResources()[0].GetResource().GetValue()), want)
			had = versions(r)
			p.cancel()
		}
	})
}
