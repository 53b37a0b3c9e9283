package eds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
)

// side is a server and its clients, without a network.
type side struct {
	server  *Server
	limit   int // of bytes of a response
	clients []*client
}

// client is a subscription to assignments. It reads and answers when it is told to.
type client struct {
	sub    *subscription
	stream *stream
	unread string // the nonce of what it has not answered; empty: there is nothing
	has    map[string]string
	given  map[string]string // by what it has not answered; empty text: removed
}

func newSide(fewest, limit int) *side {
	s := &side{server: NewServer(Options{Identifier: "hdsd-test", fewestShared: fewest}), limit: limit}
	for i := range namesInPlay {
		s.put(i, 1)
	}
	return s
}

// publish publishes an assignment of one endpoint.
func (s *side) publish(name string, endpoint int) {
	s.server.Update(publish.Update{Assignments: []publish.Assignment{assignment(name, health.EndpointID(endpoint), 1)}})
}

func (s *side) put(name, endpoints int) {
	s.server.Update(publish.Update{Assignments: []publish.Assignment{assignment(fmt.Sprint("n", name), health.EndpointID(10*name), endpoints)}})
}

// come has a client subscribe.
func (s *side) come(delta bool, names []string) {
	var m proto.Message = want(resourcev3.EndpointType, names...)
	if delta {
		m = subscribe(resourcev3.EndpointType, names...)
	}
	s.connect(delta, m, map[string]string{})
}

// connect has a client send a first request, as from the wire.
func (s *side) connect(delta bool, m proto.Message, has map[string]string) {
	st := &stream{server: s.server, permitted: access.AllClusters(), delta: delta, id: uint64(len(s.clients)), wake: make(chan struct{}, 1)}
	encoded, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	st.grpc = arriving{request: mem.BufferSlice{mem.SliceBuffer(encoded)}}
	r, err := st.reader()()
	if err == nil {
		err = st.process(r)
	}
	if err != nil {
		panic(err)
	}
	s.server.streams.add(st)
	s.clients = append(s.clients, &client{sub: st.subs[1], stream: st, has: has})
}

// reconnect has a client come again, with the versions that it has, but for one that it does not
// know any more, or knows another of. It reads what it lacks.
func (s *side) reconnect(c *client, but string, known bool) (read string) {
	if !c.stream.delta {
		return ""
	}
	m := subscribe(resourcev3.EndpointType, c.names()...)
	m.InitialResourceVersions = map[string]string{}
	for _, r := range c.sub.resources() {
		if _, has := c.has[r.Name]; has && r.Holds && r.State != Outstanding { // else its version is not what the client has
			m.InitialResourceVersions[r.Name] = r.Version
		}
	}
	if delete(m.InitialResourceVersions, but); known {
		m.InitialResourceVersions[but] = "of another server"
	}
	s.leave(c)
	s.connect(true, m, c.has)
	return s.read(s.clients[len(s.clients)-1])
}

func (s *side) leave(c *client) {
	s.server.streams.remove(c.stream)
	c.stream.leave()
	s.clients = slices.DeleteFunc(s.clients, func(other *client) bool { return other == c })
}

// read has a client read a response, if there is one, and returns what is in it.
func (s *side) read(c *client) string {
	r := c.sub.next(c.stream.nonce, s.limit)
	if r == nil {
		return "nothing"
	}
	parts, err := r.MarshalWire()
	if err != nil {
		panic(err)
	}
	c.given = map[string]string{}
	if c.stream.delta {
		m := new(discoveryv3.DeltaDiscoveryResponse)
		mustUnmarshal(parts.Materialize(), m)
		c.unread = m.GetNonce()
		for _, each := range m.GetResources() {
			c.given[each.GetName()] = summary(resourcev3.EndpointType, each.GetResource().GetValue())
		}
		for _, name := range m.GetRemovedResources() {
			c.given[name] = ""
		}
		return fmt.Sprint(m.GetSystemVersionInfo() != "", c.given)
	}
	m := new(discoveryv3.DiscoveryResponse)
	mustUnmarshal(parts.Materialize(), m)
	c.unread = m.GetNonce()
	for _, each := range m.GetResources() {
		c.given[assignmentNameOf(each.GetValue())] = summary(resourcev3.EndpointType, each.GetValue())
	}
	return fmt.Sprint(c.given)
}

// answer has a client accept or refuse what it has read. By the state of the world it names
// what it wants.
func (c *client) answer(refusal *refusal, names []string) {
	if c.unread == "" {
		return
	}
	r := &request{nonce: c.unread, refusal: refusal}
	if !c.stream.delta {
		r.names = names
	}
	if refusal == nil {
		c.accept()
	}
	c.unread = ""
	c.take(r)
}

// accept has the client use what it was given.
func (c *client) accept() {
	for name, value := range c.given {
		c.has[name] = value
		if value == "" {
			delete(c.has, name)
		}
	}
}

func (c *client) take(r *request) {
	if err := c.sub.requests.process(r); err != nil {
		panic(err)
	}
}

// names are what the client asks for. A wildcard client that gives up a missing resource may be yet
// to learn of its removal, and does not ask for it.
func (c *client) names() (all []string) {
	for _, r := range c.sub.resources() {
		if r.Exists || c.sub.interest.names(r.Name) {
			all = append(all, r.Name)
		}
	}
	return all
}

// status is all that an operator may see of the clients.
func (s *side) status() string {
	var b strings.Builder
	for _, c := range s.clients {
		k := c.sub.client("", nil)
		fmt.Fprintf(&b, "%d of %d synced, %d stale, %d refused %q;", k.Synced, k.Resources, k.Stale, k.Error, k.LastError)
		for _, r := range c.sub.resources() {
			body := ""
			if r.Body() != nil {
				body = summary(resourcev3.EndpointType, r.Body().GetValue())
			}
			fmt.Fprintf(&b, " %s %d %t %t %s %t %s", r.Name, r.State, r.Exists, r.Holds, r.Version, s.limit > 1000 && r.Sent.IsZero(), body)
			if r.Refusal != nil {
				fmt.Fprintf(&b, " %s %s", r.Refusal.Text, r.Refusal.Version)
			}
		}
		fmt.Fprintln(&b, c.sub.busy(), slices.Sorted(maps.Keys(askedOn(c.stream))))
	}
	return b.String()
}

func askedOn(st *stream) map[string]struct{} {
	n := &askedNames{named: map[string]struct{}{}}
	n.addStream(st)
	return n.named
}

// act does one step, and returns what the client concerned has read.
func (s *side) act(kind, name, value int) (read string) {
	if kind < 6 || len(s.clients) == 0 {
		switch kind {
		case 0, 1, 2:
			s.server.setHealth(health.EndpointID(10*name), health.Status(1+value%5))
		case 3:
			s.server.Update(publish.Update{RemovedAssignments: []string{fmt.Sprint("n", name)}})
		case 4:
			s.put(name, 1+value%3)
		default:
			s.come(value%2 == 0, someNames(value/2%3))
		}
		return ""
	}
	c, chosen := s.clients[value%len(s.clients)], []string{fmt.Sprint("n", name)}
	switch kind {
	case 6, 7, 8:
		return s.read(c)
	case 9, 10:
		c.answer(nil, c.names())
	case 11:
		if s.limit > 1000 { // else it matters which response a resource is in
			c.answer(newRefusal("no"), c.names())
		}
	case 12:
		if names := c.names(); c.given == nil { // more would be in a response of its own
			chosen = []string{names[name%len(names)]}
		}
		c.ask(chosen, nil)
	case 13:
		c.ask(nil, chosen)
	case 14:
		c.sub.warm(chosen)
	case 15:
		if len(c.names()) > 0 {
			return s.reconnect(c, chosen[0], value%2 == 0)
		}
	case 16:
		s.leave(c)
	case 17:
		c.ask([]string{wildcard}, nil)
	default:
		c.ask(nil, []string{wildcard})
	}
	return ""
}

// ask changes what the client asks for.
func (c *client) ask(subscribe, unsubscribe []string) {
	if c.stream.delta {
		c.take(&request{names: subscribe, unsubscribe: unsubscribe})
		return
	}
	names := slices.DeleteFunc(c.names(), func(name string) bool { return slices.Contains(unsubscribe, name) })
	for _, name := range subscribe {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		c.accept() // the nonce says so
		c.unread = ""
		c.take(&request{nonce: c.sub.delivery.nonce, names: names})
	}
}

// someNames returns one of a few lists, of which clients of a group have the same.
func someNames(which int) []string {
	return [][]string{{"n0", "n1", "n2", "n3"}, {"n3", "n2", "n1", "n0"}, {"n1", "n4", "n5"}}[which]
}

// TestGroupsChangeNothingForClients plays the same history with groups and without them. Where a
// response holds all, every response and all that operators see is the same at each step; else,
// when all clients have caught up.
func TestGroupsChangeNothingForClients(t *testing.T) {
	for _, limit := range []int{1 << 20, 120} {
		t.Run(fmt.Sprint(limit), rapid.MakeCheck(func(t *rapid.T) {
			sides := []*side{newSide(1000, limit), newSide(1, limit)}
			same := func(what string, of func(*side) string) {
				if a, b := of(sides[0]), of(sides[1]); a != b {
					t.Fatalf("%s: without groups\n%s\nwith groups\n%s", what, a, b)
				}
			}
			for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
				kind, name := rapid.IntRange(0, 18).Draw(t, "kind"), rapid.IntRange(0, namesInPlay-1).Draw(t, "name")
				value := rapid.IntRange(0, 29).Draw(t, "value")
				if limit > 1000 {
					same(fmt.Sprint("read at step ", i), func(s *side) string { return s.act(kind, name, value) })
					same(fmt.Sprint("status at step ", i), (*side).status)
				} else {
					sides[0].act(kind, name, value)
					sides[1].act(kind, name, value)
				}
			}
			for _, s := range sides {
				s.catchUp()
			}
			same("at the end", (*side).status)
			same("what clients have", (*side).contents)
			for _, s := range sides {
				for len(s.clients) > 0 {
					s.leave(s.clients[0])
				}
				if n := len(s.server.published.assignments.groups); n > 0 {
					t.Fatalf("%d groups are left", n)
				}
				for _, slot := range s.server.published.assignments.slots {
					if len(slot.watches)+len(slot.positions) > 0 || slot.resource == nil {
						t.Fatalf("left of %s: %d watches, %d positions", slot.name, len(slot.watches), len(slot.positions))
					}
				}
			}
		}))
	}
}

// catchUp has all clients read and accept everything.
func (s *side) catchUp() {
	for _, c := range s.clients {
		c.answer(nil, c.names())
		for s.read(c) != "nothing" {
			c.answer(nil, c.names())
		}
	}
}

func (s *side) contents() string {
	var b strings.Builder
	for _, c := range s.clients {
		names := c.names()
		maps.DeleteFunc(c.has, func(name, _ string) bool { return !slices.Contains(names, name) })
		fmt.Fprintln(&b, c.has)
	}
	return b.String()
}

// TestMembersOfAGroupShareWhatTheyAreSent holds what makes groups cheap: one encoded page for all,
// and no watch but of what has changed.
func TestMembersOfAGroupShareWhatTheyAreSent(t *testing.T) {
	s := newSide(1, 1<<20)
	var pages []*page
	for range 3 {
		s.come(true, someNames(0))
		c := s.clients[len(s.clients)-1]
		equal(t, "read", s.read(c), "true map[n0:UN n1:UN n2:UN n3:UN]")
		pages = append(pages, c.sub.interest.underWay)
	}
	equal(t, "pages of one moment", pages[1], pages[0])
	equal(t, "pages of one moment", pages[2], pages[0])
	s.server.setHealth(10, health.Unhealthy)
	for _, c := range s.clients {
		c.answer(nil, nil)
		equal(t, "read", s.read(c), "true map[n1:UN]")
		equal(t, "own watches", len(c.sub.watches()), 1)
	}
	s.come(true, someNames(0))
	last := s.clients[3]
	s.read(last)
	if last.sub.interest.underWay == pages[0] {
		t.Error("a newcomer got the page of before the change")
	}
}
