package relay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// TestTheStockIsBounded: what is beyond limits.max_source_endpoints is not checked, be it of
// resources without endpoints. What goes makes room.
func TestTheStockIsBounded(t *testing.T) {
	t.Parallel()
	s := newStock(10, 10, nil)
	take := func(i int) *item {
		name := fmt.Sprintf("c%02d", i)
		it, _, _ := s.acquire(assignments, true, resourceOf(name, append([]byte{0x0a, 3}, name...)))
		return it
	}
	var items []*item
	for i := range 11 {
		items = append(items, take(i))
		if refused := items[i].body.refusal() != ""; refused != (i == 10) {
			t.Errorf("resource %d of at most 10: %q", i, items[i].body.refusal())
		}
	}
	s.release(items...)
	if it := take(11); it.body.refusal() != "" || s.size() != 1 {
		t.Errorf("after all have gone: %q, %d resources", it.body.refusal(), s.size())
	}
}

// TestTheBoundOfTheStockBinds: endpoints of an assignment beyond limits.max_source_endpoints are
// not checked, and are once there is room.
func TestTheBoundOfTheStockBinds(t *testing.T) {
	l := newUnionLab(t)
	l.stock.maxEndpointsOfAll = 4
	c := l.take(clusters, "web", checkedCluster(clusterv3.Cluster_EDS, "/"))
	first := l.take(assignments, "web", assignmentOf("10.0.0.1", "10.0.0.2"))
	second := l.take(assignments, "web", assignmentOf("10.0.0.3", "10.0.0.4", "10.0.0.5"))
	if k := l.clusters()["web"]; endpointsOf(k) != 2 {
		t.Errorf("%d endpoints are checked, want the 2 that there is room for", endpointsOf(k))
	}
	l.stock.release(first)
	if k := l.clusters()["web"]; endpointsOf(k) != 3 {
		t.Errorf("once there is room, %d are, want 3", endpointsOf(k))
	}
	alone := l.take(assignments, "alone", assignmentOf("10.0.0.1"))
	if k := l.clusters()["alone"]; k == nil || !strings.Contains(k.Rejected, "limits.max_source_endpoints") {
		t.Errorf("a lone one is %+v", k)
	}
	cluster := l.take(clusters, "other", checkedCluster(clusterv3.Cluster_EDS, "/"))
	if k := l.clusters()["other"]; k == nil || k.Rejected == "" {
		t.Errorf("a cluster is %+v", k)
	}
	l.stock.release(second)
	if byName := l.clusters(); byName["alone"].Rejected+byName["other"].Rejected != "" || byName["other"].Config == nil {
		t.Errorf("with room again, they are %+v, %+v", byName["alone"], byName["other"])
	}
	l.stock.release(c, alone, cluster)
	if l.clusters(); l.stock.total != 0 || l.stock.waiting.Len() != 0 {
		t.Errorf("%d are counted after all have gone", l.stock.total)
	}
}

// TestWhatTakesFarMoreMemoryIsNotDecoded, but goes to the client as it came.
func TestWhatTakesFarMoreMemoryIsNotDecoded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind kind
		one  string
	}{"health checks": {clusters, "\x42\x00"}, "localities": {assignments, "\x12\x00"}} {
		t.Run(name, func(t *testing.T) {
			wire := append([]byte("\x0a\x03web"), bytes.Repeat([]byte(c.one), 1000)...)
			x := newBody(c.kind, "web", wire, 10)
			if !strings.Contains(x.defect, "nearly all of them must be empty") || x.assignment != nil || x.decoded.Load() != nil {
				t.Errorf("got %q, %v", x.defect, x.decoded.Load())
			}
			s := &Server{stock: newStock(10, 10, nil), book: newBook(true)}
			if got, change := x.latest(s, nil); !bytes.Equal(got, wire) || change != 0 {
				t.Errorf("the client gets %x", got)
			}
		})
	}
}
