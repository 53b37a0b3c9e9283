package relay

import (
	"fmt"
	"testing"
)

// TestTheStockIsBounded: what is beyond limits.max_source_endpoints is not checked, be it of
// resources without endpoints. What goes makes room.
func TestTheStockIsBounded(t *testing.T) {
	t.Parallel()
	s := newStock(10, 10, nil)
	take := func(i int) *item {
		name := fmt.Sprintf("c%02d", i)
		it, _, _ := s.take(assignments, true, resourceOf(name, append([]byte{0x0a, 3}, name...)))
		return it
	}
	var all []*item
	for i := range 11 {
		all = append(all, take(i))
		if refused := all[i].body.wrong != ""; refused != (i == 10) {
			t.Errorf("resource %d of at most 10: %q", i, all[i].body.wrong)
		}
	}
	s.release(all...)
	if it := take(11); it.body.wrong != "" || s.size() != 1 {
		t.Errorf("after all have gone: %q, %d resources", it.body.wrong, s.size())
	}
}
