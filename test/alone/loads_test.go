package alone

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// loads is a control plane's service for load reports. It asks for those of all clusters.
type loads struct {
	loadstatsv3.UnimplementedLoadReportingServiceServer

	mu     sync.Mutex
	counts map[string]map[string]uint64 // requests by data plane and cluster, and what became of them
}

// StreamLoadStats implements loadstatsv3.LoadReportingServiceServer.
func (l *loads) StreamLoadStats(stream loadstatsv3.LoadReportingService_StreamLoadStatsServer) error {
	plane := ""
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if node := r.GetNode(); node != nil {
			plane = node.GetMetadata().GetFields()["plane"].GetStringValue()
		}
		l.take(plane, r)
		if err := stream.Send(&loadstatsv3.LoadStatsResponse{SendAllClusters: true, LoadReportingInterval: durationpb.New(50 * time.Millisecond)}); err != nil {
			return err
		}
	}
}

func (l *loads) take(plane string, r *loadstatsv3.LoadStatsRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range r.GetClusterStats() {
		key := plane + " " + k.GetClusterName()
		if l.counts[key] == nil {
			l.counts[key] = map[string]uint64{}
		}
		counts := l.counts[key]
		counts["dropped"] += k.GetTotalDroppedRequests()
		for _, d := range k.GetDroppedRequests() {
			counts["dropped as "+d.GetCategory()] += d.GetDroppedCount()
		}
		for _, u := range k.GetUpstreamLocalityStats() {
			place := fmt.Sprintf(" in zone %s, priority %d", u.GetLocality().GetZone(), u.GetPriority())
			counts["issued"] += u.GetTotalIssuedRequests()
			counts["issued"+place] += u.GetTotalIssuedRequests()
			counts["succeeded"+place] += u.GetTotalSuccessfulRequests()
			counts["failed"+place] += u.GetTotalErrorRequests()
			counts["ended"] += u.GetTotalSuccessfulRequests() + u.GetTotalErrorRequests()
		}
	}
}

// reported is what a data plane has reported of the cluster so far, or nil if it does not report it yet.
func (l *loads) reported(p *Play, plane Plane) map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts[[...]string{"alone", "through"}[plane]+" "+p.name])
}

// compare sends requests, and compares what both data planes report of them. No data plane reports requests from
// before it has the cluster in its reports, and no request has been sent before.
func (l *loads) compare(n uint64, part string) Step {
	return func(p *Play) {
		p.t.Helper()
		Eventually("load reports", func(p *Play, plane Plane) bool { return l.reported(p, plane) != nil })(p)
		Send(int(n))(p)
		for plane := range p.rig.Planes {
			if !envoy.Await(fleet.Patience, func() bool {
				counts := l.reported(p, Plane(plane))
				return counts["issued"]+counts["dropped"] >= n && counts["ended"] == counts["issued"]
			}) {
				p.t.Fatalf("%s: of %d requests it has reported %v; %s", Plane(plane), n, l.reported(p, Plane(plane)), p.records[len(p.records)-1])
			}
		}
		Note("load reports", func(p *Play, plane Plane) string {
			counts := l.reported(p, plane)
			if counts[part] == 0 {
				p.t.Errorf("%s: nothing is reported as %s: %v", plane, part, counts)
			}
			return fmt.Sprint(counts)
		})(p)
	}
}

// TestLoadReports plays clusters whose load a control plane gets: from a data plane alone, and
// through hdsd's relay.
func TestLoadReports(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, version string) {
		l := &loads{counts: map[string]map[string]uint64{}}
		rig := NewRig(t, Options{Version: version, Checkers: 1, Relay: true, Loads: l})
		t.Run("case", func(t *testing.T) {
			rig.Run(t, []Case{
				{
					Name: "load by locality", Cluster: eds(checks(check), noPanic), Want: Same,
					Assignment: localities("{locality: {zone: a}, lb_endpoints: [$0]}, {locality: {zone: b}, lb_endpoints: [$1]}, {locality: {zone: c}, lb_endpoints: [$2]}"),
					Steps:      []Step{Ready(), Set(2, broken), Down(2), l.compare(40, "issued in zone b, priority 0")},
				},
				{
					Name: "load that is dropped", Cluster: eds(checks(check), noPanic), Want: Same,
					Assignment: assignment("$0, $1", "policy: {drop_overloads: [{category: all, drop_percentage: {numerator: 100}}]}"),
					Steps:      []Step{Ready(), l.compare(20, "dropped as all")},
				},
			})
		})
	})
}
