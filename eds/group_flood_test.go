//go:build !race || soak

package eds

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"hdsd/publish"
)

// newFloodedSide returns a side with assignments, and their names.
func newFloodedSide(fewestShared, count, endpoints int) (s *side, names []string) {
	s = &side{server: NewServer(Options{Identifier: "hdsd-test", fewestShared: fewestShared}), limit: 1 << 20}
	var u publish.Update
	for i := range count {
		names = append(names, fmt.Sprint("cluster-", i))
		u.Assignments = append(u.Assignments, assignment(names[i], 0, endpoints))
	}
	s.server.Update(u)
	return s, names
}

// flood has clients ask for the same names, each in an order of its own, so that each is a group.
// They read a response, and do not answer. It returns what each takes, and how long they take
// to leave.
func flood(clients, fewest int) (bytes int, leave time.Duration) {
	const count, endpoints = 50, 20
	s, names := newFloodedSide(fewest, count, endpoints)
	before := heap()
	for i := range clients {
		own := slices.Clone(names)
		for at, rest := 0, i; at < 3; at, rest = at+1, rest/count {
			own[at], own[rest%count] = own[rest%count], own[at]
		}
		s.come(true, own)
		s.clients[i].sub.next(s.clients[i].stream.nonce, s.limit)
	}
	bytes = (heap() - before) / clients
	began := time.Now()
	for _, c := range s.clients {
		s.server.published.assignments.forget(c.sub)
	}
	leave = time.Since(began)
	runtime.KeepAlive(s)
	return bytes, leave
}

// TestAGroupForEachClientTakesLittle: clients that each ask in an order of their own make a group
// each, and none has a copy of what it was sent. They take less than twice what they take
// without groups.
func TestAGroupForEachClientTakesLittle(t *testing.T) {
	const clients = 1000
	groups, _ := flood(clients, 16)
	without, _ := flood(clients, clients)
	if groups > 2*without {
		t.Errorf("each takes %d bytes, and %d without groups", groups, without)
	}
}

// BenchmarkLeaveManyGroups is what it takes that each of many groups ends, beside as many
// clients without groups.
func BenchmarkLeaveManyGroups(b *testing.B) {
	const clients = 4000
	for b.Loop() {
		_, groups := flood(clients, 16)
		_, without := flood(clients, clients)
		b.ReportMetric(float64(groups.Microseconds())/clients, "us/group")
		b.ReportMetric(float64(without.Microseconds())/clients, "us/client")
	}
}
