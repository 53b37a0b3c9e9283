package relay

import (
	"bytes"
	"fmt"
	"strings"
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

// TestWhatTakesFarMoreMemoryIsNotDecoded, but goes to the client as it came.
func TestWhatTakesFarMoreMemoryIsNotDecoded(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		kind kind
		one  string
	}{"health checks": {clusters, "\x42\x00"}, "localities": {assignments, "\x12\x00"}} {
		t.Run(what, func(t *testing.T) {
			wire := append([]byte("\x0a\x03web"), bytes.Repeat([]byte(c.one), 1000)...)
			x := newBody(c.kind, "web", wire, 10)
			if !strings.Contains(x.wrong, "nearly all of them must be empty") || x.lists != nil || x.kept.Load() != nil {
				t.Errorf("got %q, %v", x.wrong, x.kept.Load())
			}
			s := &Server{stock: newStock(10, 10, nil), book: newBook(true)}
			if out, change := x.latest(s); !bytes.Equal(out, wire) || change != 0 {
				t.Errorf("the client gets %x", out)
			}
		})
	}
}
