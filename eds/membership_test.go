package eds

import (
	"fmt"
	"slices"
	"testing"

	"hdsd/health"
)

// manyMembers returns a server with 150 assignments, and clients by delta and by the state of the
// world that have all of them as members of a group.
func manyMembers() (s *side, names []string) {
	s, names = &side{server: NewServer(Options{fewestShared: 1}), limit: 1 << 20}, manyNames(150)
	for i, name := range names {
		s.publish(name, i)
	}
	s.come(true, names)
	s.come(false, names)
	s.catchUp()
	return s, names
}

// TestAMemberHasAWatchOfWhatHasChanged: of nothing else, whatever else its client does.
func TestAMemberHasAWatchOfWhatHasChanged(t *testing.T) {
	s, names := manyMembers()
	for i, changed := range []int{0, 63, 64, 149, 64} {
		s.server.setHealth(health.EndpointID(changed), health.Status(1+i))
		for _, c := range s.clients {
			s.read(c)
			equal(t, "what is read", fmt.Sprint(len(c.given), c.given[names[changed]] != ""), "1 true")
			c.answer(nil, names)
			equal(t, "watches", len(c.sub.watches()), min(i+1, 4))
			k := c.sub.client("", nil)
			equal(t, "status", fmt.Sprint(k.Resources, k.Synced), "150 150")
		}
	}
	s.publish("another", 150)
	for _, c := range s.clients {
		c.ask([]string{"another"}, nil)
		s.read(c)
		equal(t, "what is read", fmt.Sprint(len(c.given), c.given["another"] != ""), "1 true")
		c.answer(nil, append(slices.Clone(names), "another"))
		equal(t, "watches", len(c.sub.watches()), 5)
		equal(t, "resources", len(c.sub.resources()), 151)
	}
}

// TestANameThatAMemberGivesUp: its client is sent no change of it until it requests it again.
func TestANameThatAMemberGivesUp(t *testing.T) {
	for _, changed := range []bool{false, true} {
		s, names := manyMembers()
		renounced, status := names[70:71], health.Unhealthy
		flip := func() {
			status = health.Healthy + health.Unhealthy - status
			s.server.setHealth(70, status)
		}
		if changed {
			flip()
			s.catchUp()
		}
		for _, c := range s.clients {
			for range 3 {
				c.ask(nil, renounced)
				flip()
				equal(t, "read after it is given up", s.read(c), "nothing")
				equal(t, "time of the oldest change to send", c.sub.queue.oldest, 0)
				equal(t, "resources", len(c.sub.resources()), 149)
				equal(t, "includes it", c.sub.interest.includes(renounced[0]), false)
				c.ask(renounced, nil)
				s.read(c)
				equal(t, "given", len(c.given), 1)
				c.answer(nil, c.names())
				flip()
				s.read(c)
				equal(t, "given", len(c.given), 1)
				c.answer(nil, c.names())
				equal(t, "read twice", s.read(c), "nothing")
				equal(t, "names", fmt.Sprint(c.sub.interest.named, c.sub.interest.bytes), fmt.Sprint(150, 150*len(names[0])))
			}
		}
	}
}

// TestARefusedPageKeepsEachAnswer: a client that names refused resources accepts the others of a page.
func TestARefusedPageKeepsEachAnswer(t *testing.T) {
	s := newSide(1, 1<<20)
	for _, delta := range []bool{true, false} {
		s.come(delta, someNames(0))
	}
	for _, c := range s.clients {
		s.read(c)
		c.answer(newRefusal("[resource index 2: no; resource index 3: no"), someNames(0))
		k := c.sub.client("", nil)
		equal(t, "status", fmt.Sprint(k.Synced, k.Stale, k.Error), "2 0 2")
		equal(t, "read again", s.read(c), "nothing")
	}
	s.put(2, 2)
	for _, c := range s.clients {
		s.read(c)
		c.answer(nil, someNames(0))
		k := c.sub.client("", nil)
		equal(t, "status", fmt.Sprint(k.Synced, k.Stale, k.Error), "3 0 1")
	}
}
