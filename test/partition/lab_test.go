package partition

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"go.uber.org/goleak"

	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoints is large enough that a path between two zones can be doubted, which takes
// 20 votes on each.
const endpoints = 72

var zones = []string{"a", "b", "c"}

// checker is an Envoy that probes from an address of its own.
type checker struct{ id, zone, ip string }

// lab is a whole fleet whose network can be cut.
type lab struct {
	*fleet.Coordinator
	checkers  map[string]checker
	upstreams []*upstream.Server // in zones a, b and c in turn
	plane     *envoy.Process
	zonal     map[string]*envoy.Process // data planes by their zone, with its view of health
	down      int                       // upstreams that fail for other reasons than a cut
	failed    map[string]int            // by address of such upstreams: how often it may go down
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		upstreams: fleet.Upstreams(t, endpoints, upstream.Options{}), checkers: map[string]checker{}, failed: map[string]int{}, zonal: map[string]*envoy.Process{},
	}
	// The timeout is long enough for a machine with few cores.
	check := `{timeout: 1.5s, interval: 0.5s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`
	l.Coordinator = fleet.Prepare(t, fleet.ClusterFile(fleet.StaticCluster("web", check, fleet.Addresses(l.upstreams))), fleet.FastReports+"data_planes: {zone_health: BY_LOCALITY}")
	l.Start()
	for i := range 2 * len(zones) {
		k := checker{id: fmt.Sprintf("checker-%d", i+1), zone: zones[i%len(zones)], ip: fmt.Sprintf("127.0.9.%d", i+1)}
		l.checkers[k.id] = k
		envoy.StartChecker(t, envoy.Checker{ID: k.id, HDS: fleet.RelayHDS(t, l.GRPC, from(k.ip)), Locality: health.Locality{Region: "eu", Zone: k.zone}})
	}
	l.plane = envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: l.GRPC, Delta: true, Clusters: []string{"web"}})
	for z, region := range map[string]string{"a": "eu", "b": "eu", "c": ""} { // a zone may have no region
		l.zonal[z] = envoy.StartDataPlane(t, envoy.DataPlane{
			ID: "dp-" + z, ADS: l.GRPC, Delta: z == "a", Clusters: []string{"web"}, Locality: health.Locality{Region: region, Zone: z},
		})
	}
	envoy.Eventually(t, fleet.Patience, "all to be well", func() bool { return l.well(t) })
	return l
}

// well reports whether all endpoints are healthy everywhere.
func (l *lab) well(t *testing.T) bool {
	t.Helper()
	for _, e := range l.Endpoints("web") {
		for _, o := range e.Observations {
			if o.Status != "HEALTHY" || o.Disbelieved != "" {
				return false
			}
		}
		if e.Health != "HEALTHY" || len(e.Observations) != 3 {
			return false
		}
	}
	return l.rotation(t) == endpoints && l.zonesSee(t, nil, nil)
}

// zonesSee reports whether the data planes of each zone leave out what is down, and
// what a cut (nil: none) hides from all checkers of their zone.
func (l *lab) zonesSee(t *testing.T, c *cut, down []*upstream.Server) bool {
	t.Helper()
	for z, plane := range l.zonal {
		told := plane.Clusters(t)["web"]
		for i, s := range l.upstreams {
			beyond := c != nil && len(c.paths) > 0 && c.severs(checker{zone: z}, zone(i))
			if told[s.Addr()].Failed() != (beyond || slices.Contains(down, s)) {
				return false
			}
		}
	}
	return true
}

// zone returns the zone of the i-th upstream.
func zone(i int) string { return zones[i%len(zones)] }

// rotation returns how many endpoints get traffic from the data plane.
func (l *lab) rotation(t *testing.T) int {
	t.Helper()
	const gauge = "cluster.web.membership_healthy"
	return int(l.plane.Stats(t, "^"+gauge+"$")[gauge])
}

// await waits for a condition. Until then, everything but failed upstreams must stay in
// rotation.
func (l *lab) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	envoy.Eventually(t, fleet.Patience, what, func() bool {
		if n := l.rotation(t); n < endpoints-l.down {
			t.Fatalf("%d of %d endpoints are in rotation while %d are down", n, endpoints, l.down)
		}
		return condition()
	})
}

// sever breaks the network as a cut says.
func (l *lab) sever(c *cut) {
	l.each(c, func(s *upstream.Server, k checker) { s.Cut(k.ip, c.how) })
}

func (l *lab) mend(c *cut) {
	l.each(c, func(s *upstream.Server, k checker) { s.Mend(k.ip) })
}

func (l *lab) each(c *cut, do func(*upstream.Server, checker)) {
	for i, s := range l.upstreams {
		for _, k := range l.checkers {
			if c.severs(k, zone(i)) {
				do(s, k)
			}
		}
	}
}

// victims returns two endpoints that a cut hides from some of their checkers, and that
// have not failed before. The first fails with the cut. Its fall may be reverted once,
// while the checkers that report it down are doubted for the cut.
func (l *lab) victims(t *testing.T, c *cut) (two []*upstream.Server) {
	t.Helper()
	observed := l.Endpoints("web")
	for i, s := range l.upstreams {
		for _, o := range observed[s.Addr()].Observations {
			if len(two) < 2 && l.failed[s.Addr()] == 0 && c.severs(l.checkers[o.Checker], zone(i)) {
				two = append(two, s)
				l.failed[s.Addr()] = 3 - len(two)
			}
		}
	}
	if len(two) < 2 {
		t.Fatal("there are no two endpoints left that could fail")
	}
	return two
}

// from has checkers probe from an address.
func from(ip string) func(string, *healthv3.HealthCheckSpecifier) error {
	source := &corev3.BindConfig{SourceAddress: &corev3.SocketAddress{Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{}}}
	return func(_ string, s *healthv3.HealthCheckSpecifier) error {
		for _, cluster := range s.GetClusterHealthChecks() {
			cluster.UpstreamBindConfig = source
		}
		return nil
	}
}
