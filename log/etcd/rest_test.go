package etcd_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	real "hdsd/internal/demo/envoy"
	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// TestNothingIsWrittenAtRest: replicas with a leader that decides nothing renew their leases, and
// etcd writes nothing at all.
func TestNothingIsWrittenAtRest(t *testing.T) {
	s := server.Start(t)
	a, b := open(t, "a", nil, s), open(t, "b", nil, s)
	log := join(t, a, "", 0)
	r := follow(t, join(t, b, "", 0), 0)
	commit(t, log, campaign(t, log), 1, 1)
	r.reads(t, 0, 1)
	until(t, b.View, func(v etcd.View) bool { return len(v.Members) == 2 && v.Leader == "a" })
	etcdStatus := func() *pb.StatusResponse {
		return must[*pb.StatusResponse](t)(pb.NewMaintenanceClient(raw(t, s)).Status(limited(t), &pb.StatusRequest{}))
	}
	before, renewed := etcdStatus(), renewals(t, s)
	if !real.Await(t.Context(), patience, func() bool { return renewals(t, s) >= renewed+8 }) {
		t.Fatal("the leases are not renewed")
	}
	after := etcdStatus()
	if before.RaftIndex != after.RaftIndex || before.Header.Revision != after.Header.Revision {
		t.Errorf("etcd wrote: index %d, then %d; revision %d, then %d", before.RaftIndex, after.RaftIndex, before.Header.Revision, after.Header.Revision)
	}
}

var renewedTotal = regexp.MustCompile(`(?m)^etcd_debugging_lease_renewed_total (\S+)`)

// renewals is how many renewals of leases a server counts.
func renewals(t *testing.T, s *server.Server) float64 {
	t.Helper()
	response := must[*http.Response](t)(http.Get(s.URL + "/metrics"))
	defer response.Body.Close()
	found := renewedTotal.FindSubmatch(must[[]byte](t)(io.ReadAll(response.Body)))
	if found == nil {
		t.Fatal("etcd does not count the renewals")
	}
	return must[float64](t)(strconv.ParseFloat(string(found[1]), 64))
}

// BenchmarkCommit measures a commit, and how long it takes until another replica has it, with
// files synced. Entries have a kilobyte.
func BenchmarkCommit(b *testing.B) {
	s := server.StartCluster(b, 1)[0]
	log := join(b, open(b, "a", nil, s), "", 0)
	other := join(b, open(b, "b", nil, s), "", 0)
	epoch := campaign(b, log)
	seen := make(chan time.Time, 1)
	ended := make(chan struct{})
	ctx := limited(b)
	go func() {
		defer close(ended)
		_ = other.Follow(ctx, etcd.Position{Sequence: 0}, func(etcd.Entry) error { seen <- time.Now(); return nil })
	}()
	var commits, reads []time.Duration
	payload := make([]byte, 1<<10)
	for sequence := uint64(1); b.Loop(); sequence++ {
		begin := time.Now()
		if err := log.Commit(ctx, epoch, sequence, payload); err != nil {
			b.Fatal(err)
		}
		commits = append(commits, time.Since(begin))
		reads = append(reads, (<-seen).Sub(begin))
	}
	for name, all := range map[string][]time.Duration{"commit": commits, "read": reads} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), name+"-p99-µs")
	}
}
