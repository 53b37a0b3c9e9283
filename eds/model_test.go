package eds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/publish"
)

// step is one step of a history; the meaning of the numbers depends on the kind.
type step struct{ kind, name, value int }

const kinds, namesInPlay = 17, 6

// target is a server that a history is published to.
type target interface {
	put(name string, first health.EndpointID, statuses []health.Status)
	remove(name string)
}

// model is a client that does what the protocol asks of clients.
type model interface {
	subscribe(name string)
	unsubscribe(name string)
	// deliver accepts or refuses the next response; false: there is none.
	deliver(refuse bool) bool
	reconnect()
	has() map[string]string
	interested(name string) bool
	close()
}

// world is the truth: the health of each assignment's endpoints.
type world map[string][]health.Status

func (w world) summary(name string) string {
	text := ""
	for _, s := range w[name] {
		text += s.String()[:2]
	}
	return text
}

// play runs a history with all targets and clients. Then it changes every resource once
// more, so that refused ones are sent again, and lets every client catch up.
func play(steps []step, targets []target, clients []model) world {
	w := world{}
	put := func(name int, statuses []health.Status) {
		text := fmt.Sprint("n", name)
		w[text] = statuses
		for _, t := range targets {
			t.put(text, health.EndpointID(10*name), statuses)
		}
	}
	for _, s := range steps {
		name := fmt.Sprint("n", s.name)
		switch {
		case s.kind < 5:
			if len(w[name]) > 0 {
				next := slices.Clone(w[name])
				next[s.value%len(next)] = health.Status(1 + s.value%5)
				put(s.name, next)
			}
		case s.kind < 7:
			put(s.name, slices.Repeat([]health.Status{health.Status(1 + s.value%5)}, 1+s.value%3))
		case s.kind == 7:
			delete(w, name)
			for _, t := range targets {
				t.remove(name)
			}
		default:
			for _, c := range clients {
				act(c, s, name)
			}
		}
		if s.value%2 == 0 {
			synctest.Wait()
		}
	}
	for _, c := range clients {
		catchUp(c)
	}
	for n := range namesInPlay {
		if old := w[fmt.Sprint("n", n)]; old != nil {
			put(n, slices.Repeat([]health.Status{1 + old[0]%5}, len(old)+1))
		}
	}
	for _, c := range clients {
		catchUp(c)
	}
	return w
}

func act(c model, s step, name string) {
	switch s.kind {
	case 8, 9:
		c.subscribe(name)
	case 10:
		c.unsubscribe(name)
	case 11:
		c.subscribe(wildcard)
	case 12:
		c.unsubscribe(wildcard)
	case 13, 14:
		c.deliver(false)
	case 15:
		c.deliver(true)
	case 16:
		c.reconnect()
	}
}

func catchUp(c model) {
	for {
		synctest.Wait()
		if !c.deliver(false) {
			return
		}
	}
}

// expect compares what a client has with the truth of what it asks for.
func (w world) expect(c model) error {
	want := map[string]string{}
	for name := range w {
		if c.interested(name) {
			want[name] = w.summary(name)
		}
	}
	if got := c.has(); !maps.Equal(got, want) {
		return fmt.Errorf("the client has %v, the server %v", got, want)
	}
	return nil
}

// ours publishes to the server under test.
type ours struct{ server *Server }

func (o ours) put(name string, first health.EndpointID, statuses []health.Status) {
	var changes []publish.Health
	for i, s := range statuses {
		changes = append(changes, publish.Health{ID: first + health.EndpointID(i), Status: s})
	}
	o.server.SetHealth(changes)
	if e := o.server.published.ledger.assignments[name]; e == nil || e.endpoints.len() != len(statuses) {
		o.server.Update(publish.Update{Assignments: []publish.Assignment{assignment(name, first, len(statuses))}})
	}
}

func (o ours) remove(name string) {
	o.server.Update(publish.Update{RemovedAssignments: []string{name}})
}

// asks is what a client asks for. The first subscription begins the stream.
type asks struct {
	names map[string]bool
	begun bool
	at    *corev3.Locality // of the client's node

	agents  []string // user agents of the streams, in turn, where set
	streams int      // streams that have ended
}

func (i *asks) agent() string {
	if len(i.agents) == 0 {
		return ""
	}
	return i.agents[i.streams%len(i.agents)]
}

// node puts the client's locality and user agent into a node.
func (i *asks) node(n *corev3.Node) { n.Locality, n.UserAgentName = i.at, i.agent() }

// form is how an assignment of some endpoints in one locality begins, where agents are set.
func (i *asks) form(endpoints int) string {
	switch {
	case len(i.agents) == 0:
		return ""
	case strings.HasPrefix(i.agent(), "gRPC"):
		return fmt.Sprintf(` "a"*%d:`, endpoints)
	}
	return ` "a":`
}

// read describes an encoded assignment.
func (i *asks) read(value []byte) string {
	if len(i.agents) == 0 {
		return summary(resourcev3.EndpointType, value)
	}
	return localities(value)
}

func (i *asks) interested(name string) bool { return i.names[name] || i.names[wildcard] }

func (i *asks) prune(values map[string]string) {
	maps.DeleteFunc(values, func(name, _ string) bool { return !i.interested(name) })
}

// deltaModel is a delta client.
type deltaModel struct {
	asks
	b        *bench
	p        *deltaPeer
	values   map[string]string
	versions map[string]string
}

func newDeltaModel(b *bench) *deltaModel {
	return &deltaModel{
		asks: asks{names: map[string]bool{}},
		b:    b, p: b.delta(), values: map[string]string{}, versions: map[string]string{},
	}
}

func (m *deltaModel) subscribe(name string) {
	m.names[name] = true
	r := subscribe(resourcev3.EndpointType, name)
	m.node(r.Node)
	if !m.begun {
		m.begun = true
		r.ResourceNamesSubscribe = slices.Sorted(maps.Keys(m.names))
		r.InitialResourceVersions = maps.Clone(m.versions)
	}
	m.p.send(r)
}

func (m *deltaModel) unsubscribe(name string) {
	if !m.names[name] {
		return
	}
	delete(m.names, name)
	m.prune(m.values)
	m.prune(m.versions)
	if m.begun {
		m.p.send(unsubscribe(resourcev3.EndpointType, name))
	}
}

func (m *deltaModel) deliver(refuse bool) bool {
	var r *discoveryv3.DeltaDiscoveryResponse
	select {
	case r = <-m.p.received:
	default:
		return false
	}
	if refuse && len(r.GetRemovedResources()) == 0 { // what is gone will not change any more
		m.p.send(nack(r, "refused"))
		return true
	}
	for _, resource := range r.GetResources() {
		if text := m.read(resource.GetResource().GetValue()); text != "" {
			m.values[resource.GetName()] = text
		} else { // what gRPC gets of what does not exist
			delete(m.values, resource.GetName())
		}
		m.versions[resource.GetName()] = resource.GetVersion()
	}
	for _, name := range r.GetRemovedResources() {
		delete(m.values, name)
		delete(m.versions, name)
	}
	m.prune(m.values)
	m.prune(m.versions)
	m.p.send(ack(r))
	return true
}

func (m *deltaModel) reconnect() {
	m.p.cancel()
	synctest.Wait()
	m.p, m.begun, m.streams = m.b.delta(), false, m.streams+1
	for name := range m.names {
		m.subscribe(name)
		return
	}
}

func (m *deltaModel) has() map[string]string { return m.values }
func (m *deltaModel) close()                 { m.p.cancel() }

// stateModel is a state-of-the-world client. An empty assignment is none.
type stateModel struct {
	asks
	b      *bench
	p      *statePeer
	latest *discoveryv3.DiscoveryResponse
	values map[string]string
}

func newStateModel(b *bench) *stateModel {
	return &stateModel{asks: asks{names: map[string]bool{}}, b: b, p: b.state(), values: map[string]string{}}
}

func (m *stateModel) ask() {
	if len(m.names) == 0 && !m.begun {
		return
	}
	m.begun = true
	r := want(resourcev3.EndpointType, slices.Sorted(maps.Keys(m.names))...)
	m.node(r.Node)
	r.ResponseNonce, r.VersionInfo = m.latest.GetNonce(), m.latest.GetVersionInfo()
	m.p.send(r)
}

func (m *stateModel) subscribe(name string) {
	m.names[name] = true
	m.ask()
}

func (m *stateModel) unsubscribe(name string) {
	delete(m.names, name)
	m.prune(m.values)
	m.ask()
}

func (m *stateModel) deliver(refuse bool) bool {
	select {
	case m.latest = <-m.p.received:
	default:
		return false
	}
	names := slices.Sorted(maps.Keys(m.names))
	if refuse && !removes(m.latest) {
		m.p.send(nackState(m.latest, "refused", names...))
		return true
	}
	for _, resource := range m.latest.GetResources() {
		name := assignmentNameOf(resource.GetValue())
		if text := m.read(resource.GetValue()); text != "" {
			m.values[name] = text
		} else {
			delete(m.values, name)
		}
	}
	m.prune(m.values)
	m.p.send(ackState(m.latest, names...))
	return true
}

func removes(r *discoveryv3.DiscoveryResponse) bool {
	return slices.ContainsFunc(r.GetResources(), func(resource *anypb.Any) bool {
		return summary(resourcev3.EndpointType, resource.GetValue()) == ""
	})
}

func (m *stateModel) reconnect() {
	m.p.cancel()
	synctest.Wait()
	m.p, m.begun, m.latest, m.streams = m.b.state(), false, nil, m.streams+1
	// Only names learn of what was removed meanwhile.
	maps.DeleteFunc(m.values, func(name, _ string) bool { return !m.names[name] })
	m.ask()
}

func (m *stateModel) has() map[string]string { return m.values }
func (m *stateModel) close()                 { m.p.cancel() }

// TestClientsConverge plays histories to clients of both kinds. Rapid makes up and
// shrinks the histories.
func TestClientsConverge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			return step{
				kind: rapid.IntRange(0, kinds-1).Draw(r, "kind"), name: rapid.IntRange(0, namesInPlay-1).Draw(r, "name"),
				value: rapid.IntRange(0, 99).Draw(r, "value"),
			}
		}), 0, 60).Draw(r, "steps")
		var problems []error
		inBubble(t, Options{MaxResponseBytes: 400}, func(_ *testing.T, b *bench) {
			clients := []model{newDeltaModel(b), newStateModel(b)}
			w := play(steps, []target{ours{b.server}}, clients)
			for _, c := range clients {
				if err := w.expect(c); err != nil {
					problems = append(problems, fmt.Errorf("%T: %w", c, err))
				}
				c.close()
			}
			for _, c := range b.server.Clients(nil) {
				if c.Stale != 0 {
					problems = append(problems, fmt.Errorf("not caught up: %+v", c))
				}
			}
		})
		for _, err := range problems {
			r.Error(err)
		}
	})
}

func randomSteps(random *rand.Rand, n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{random.IntN(kinds), random.IntN(namesInPlay), random.IntN(100)}
	}
	return steps
}
