//go:build !race || soak

package eds

import (
	"runtime"
	"testing"

	"hdsd/health"
	"hdsd/publish"
)

// TestAssignmentsAreSmall bounds what is kept of each endpoint of an assignment beside its
// bytes on the wire.
func TestAssignmentsAreSmall(t *testing.T) {
	const endpoints, most = 20_000, 56 // bytes
	a := assignment("web", 0, endpoints)
	s := NewServer(Options{})
	before := inUse()
	s.Update(publish.Update{Assignments: []publish.Assignment{a}})
	wire := len(s.published.assignments.slots["web"].resource.frame.bytes)
	each := (inUse() - before - wire) / endpoints
	runtime.KeepAlive(a)
	runtime.KeepAlive(s)
	if each > most {
		t.Errorf("%d bytes for each endpoint, want %d at most", each, most)
	}
}

// TestAMemberOfAGroupIsSmall bounds what is kept of each client of a crowd with the same names, before
// and after each of these has changed.
func TestAMemberOfAGroupIsSmall(t *testing.T) {
	const clients, count, fresh, changed = 100, 1000, 3 << 10, 100 // bytes a client, and a name of it
	names := manyNames(count)
	s := &side{server: NewServer(Options{fewestShared: 1}), limit: 1 << 20}
	s.server.Update(publish.Update{Assignments: manyAssignments(names, 1)})
	before := inUse()
	for range clients {
		s.come(true, names)
	}
	for _, c := range s.clients {
		c.stream.grpc = nil // it keeps the request
	}
	respondAll := func() {
		for _, c := range s.clients {
			for respond(c.sub) > 0 {
			}
		}
	}
	respondAll()
	if each := (inUse() - before) / clients; each > fresh {
		t.Errorf("%d bytes for each client, want %d at most", each, fresh)
	}
	for i := range count {
		s.server.setHealth(health.EndpointID(i), health.Unhealthy)
		respondAll()
	}
	if each := (inUse() - before) / clients / count; each > changed {
		t.Errorf("%d bytes for each name of a client, want %d at most", each, changed)
	}
	runtime.KeepAlive(s)
}

// inUse is how many bytes of the heap are not garbage.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
