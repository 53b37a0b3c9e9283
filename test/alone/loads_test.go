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
	rounds map[string]int               // reports of a data plane
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
	l.rounds[plane]++
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
		}
	}
}

// settle waits until a data plane has reported all requests that have ended. Each report has those
// since the last one, but on a busy machine several are on their way.
func (l *loads) settle(p *Play, plane Plane) {
	p.t.Helper()
	rounds := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.rounds[[...]string{"alone", "through"}[plane]]
	}
	for before, _ := l.reported(p, plane); ; {
		from := rounds()
		envoy.Eventually(p.t, fleet.Patience, "further load reports "+plane.String(), func() bool { return rounds() >= from+20 })
		now, _ := l.reported(p, plane)
		if maps.Equal(now, before) {
			return
		}
		before = now
	}
}

// reported is what a data plane has reported of the cluster so far, and the number of requests
// in it.
func (l *loads) reported(p *Play, plane Plane) (counts map[string]uint64, requests uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts = maps.Clone(l.counts[[...]string{"alone", "through"}[plane]+" "+p.name])
	return counts, counts["issued"] + counts["dropped"]
}

// compare sends requests, and compares what both data planes report of them. Before, it sends
// some until each is reported: no data plane reports what was before the control plane asked.
func (l *loads) compare(n int, part string) Step {
	return func(p *Play) {
		p.t.Helper()
		var counts [2]map[string]uint64
		var requests [2]uint64
		for plane := range p.rig.Planes {
			envoy.Eventually(p.t, fleet.Patience, "load reports "+Plane(plane).String(), func() bool {
				_, before := l.reported(p, Plane(plane))
				p.send(Plane(plane), nil)
				return envoy.Await(time.Second, func() bool {
					_, now := l.reported(p, Plane(plane))
					return now > before
				})
			})
			l.settle(p, Plane(plane))
			counts[plane], requests[plane] = l.reported(p, Plane(plane))
		}
		Send(n)(p)
		Eventually("reports of all requests", func(p *Play, plane Plane) bool {
			_, now := l.reported(p, plane)
			return now >= requests[plane]+uint64(n)
		})(p)
		for plane := range p.rig.Planes {
			l.settle(p, Plane(plane)) // what became of a request can come a report later
		}
		Note("load reports", func(p *Play, plane Plane) string {
			now, _ := l.reported(p, plane)
			for key, before := range counts[plane] {
				now[key] -= before
			}
			if now[part] == 0 {
				p.t.Errorf("%s: nothing is reported as %s: %v", plane, part, now)
			}
			return fmt.Sprint(now)
		})(p)
	}
}

// TestLoadReports plays clusters whose load a control plane gets: from a data plane alone, and
// through hdsd's relay.
func TestLoadReports(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, version string) {
		l := &loads{counts: map[string]map[string]uint64{}, rounds: map[string]int{}}
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
