//go:build !race || soak

package eds

import (
	"runtime"
	"slices"
	"testing"
)

// TestCopiesOfPagesAreLimited: clients that ask in many orders, and share each order for a moment,
// have hdsd keep a few copies of what they were sent, not one for each order.
func TestCopiesOfPagesAreLimited(t *testing.T) {
	const orders, count, endpoints = 100, 20, 300
	s, names := newFloodedSide(0, count, endpoints)
	copies := &s.server.published.assignments.copies
	const taken = maxCopies - 1<<20 // as if others had the room for all but a few copies
	copies.Store(taken)
	page, before := 0, heap()
	for i := range orders {
		own := slices.Clone(names)
		own[0], own[i%count] = own[i%count], own[0]
		own[1], own[i/count] = own[i/count], own[1]
		for range fewUses + 1 {
			s.come(true, own)
			c := s.clients[len(s.clients)-1]
			page = c.sub.next(c.stream.nonce, s.limit).size
		}
		for range fewUses {
			s.leave(s.clients[len(s.clients)-1])
		}
	}
	if each := (heap() - before) / orders; each > page/4 {
		t.Errorf("a client that has not answered takes %d bytes, and its response has %d", each, page)
	}
	if n := copies.Load(); n <= taken+int64(page) || n > maxCopies {
		t.Errorf("copies take %d bytes", n)
	}
	for len(s.clients) > 0 {
		s.leave(s.clients[0])
	}
	for range 1000 { // the cleanup follows the collection
		if heap(); copies.Load() == taken {
			break
		}
	}
	equal(t, "bytes of copies that are left", copies.Load(), taken)
	runtime.KeepAlive(s)
}
