//go:build !race || soak

package eds

import (
	"runtime"
	"testing"

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

// inUse is how many bytes of the heap are not garbage.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
