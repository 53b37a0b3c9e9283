package scale

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"
)

// startOf is how long a node of a kind takes to its first listener. It compares no bytes, which
// would take time.
func startOf(t testing.TB, server string, kind int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n := &relayedNode{t: t, kind: kind, id: "start", synced: make(chan struct{}), ended: make(chan struct{})}
	go n.run(ctx, server)
	<-n.synced
	cancel()
	<-n.ended
	return n.started
}

// BenchmarkRelayedStart has a node take 1,000 clusters, their assignments and a listener: from
// the control plane, and through an hdsd that has just started, as the first one, as the first
// of another kind (other bytes for the same endpoints), and as one more of a known kind. After
// a restart, hdsd has stored health for all of them.
func BenchmarkRelayedStart(b *testing.B) {
	starts := map[string][]time.Duration{}
	for b.Loop() {
		w := newWorld(1000, 2)
		p := newKindsPlane(b, w, 2)
		s := simulate(b, w, 3, 3, time.Second, "")
		if path := os.Getenv("HDSD_BINARY"); path != "" {
			s.Binary = path
		}
		s.relayTo(p)
		s.Start()
		s.connect()
		note := func(what, server string, kind int) { starts[what] = append(starts[what], startOf(b, server, kind)) }
		note("direct", p.address, 0)
		note("first", s.GRPC, 0)
		note("direct", p.address, 1)
		s.until("verdicts", slowly(func() bool {
			return s.Clusters()[clusterName(0)].Healthy == 2 && s.Clusters()[clusterName(998)].Healthy == 2
		}))
		note("other-kind", s.GRPC, 1)
		note("known", s.GRPC, 0)
		note("known", s.GRPC, 1)
		s.Kill()
		s.Start()
		note("restarted", s.GRPC, 0)
		s.Kill()
	}
	for what, all := range starts {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, what+"-ms")
		b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, what+"-worst-ms")
	}
	b.ReportMetric(load(b), "load")
}
