package fleet

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestEachWayIn takes clusters from five management servers, each in a way of its
// own, and gives their health to an Envoy.
func TestEachWayIn(t *testing.T) {
	t.Parallel()
	c := Prepare(t, "", "")
	kinds := []string{"REST", "GRPC", "DELTA_GRPC", "AGGREGATED_GRPC", "AGGREGATED_DELTA_GRPC"}
	var sources []string
	managers, ups := map[string]*manager{}, map[string][]*upstream.Server{}
	for _, kind := range kinds {
		name := strings.ToLower(kind)
		m := startManager(t, name)
		managers[name], ups[name] = m, Upstreams(t, 2, upstream.Options{})
		m.publish(Addresses(ups[name]), nil)
		address := m.grpc
		if kind == "REST" {
			address = m.http
		}
		sources = append(sources, sourceOf(name, kind, address, ""))
	}
	c.from(FastReports, sources...)
	c.Start()
	Checkers(t, c, 3)
	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: c.GRPC, CDS: true, Route: "rest"})
	for name := range managers {
		c.AwaitAllHealthy(name, Addresses(ups[name]), []*envoy.Process{plane})
	}
	for name, m := range managers {
		set(t, ups[name][1], upstream.Status(503))
		c.AwaitHealth(name, ups[name][1].Addr(), "UNHEALTHY")
		AwaitPlane(t, plane, name, ups[name][1].Addr(), "UNHEALTHY")
		// What the server says counts, too, and new endpoints are checked.
		more := append(ups[name], Upstreams(t, 1, upstream.Options{})...)
		m.publish(Addresses(more), map[string]corev3.HealthStatus{more[0].Addr(): corev3.HealthStatus_DRAINING})
		AwaitPlane(t, plane, name, more[0].Addr(), "DRAINING")
		c.AwaitAllHealthy(name, Addresses(more[2:]), []*envoy.Process{plane})
		m.publish(Addresses(more[2:]), nil) // so much at once is held until somebody accepts it
		envoy.Eventually(t, Patience, name+": something to accept", func() bool { return c.accept(name) })
		envoy.Eventually(t, Patience, name+": the others to be gone", func() bool { return len(plane.Clusters(t)[name]) == 1 })
	}
	var clients struct {
		Clients []struct{ ID, Kind, TypeURL string }
	}
	c.ask("/v1/clients", &clients)
	upstreams := 0
	for _, client := range clients.Clients {
		if client.Kind == "upstream" {
			upstreams++
		}
	}
	if upstreams != 2*len(kinds) {
		t.Errorf("%d upstreams are shown: %+v", upstreams, clients)
	}
}

// accept accepts what is held of a source, and reports whether anything was.
func (c *Coordinator) accept(source string) bool {
	c.t.Helper()
	answer, err := http.Post("http://"+c.HTTP+"/v1/sources", "application/json", strings.NewReader(fmt.Sprintf(`{"name": %q}`, source)))
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// TestAChainOfCoordinators: a management server, an hdsd that checks, an hdsd
// that passes on what that one says, an Envoy.
func TestAChainOfCoordinators(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	m := startManager(t, "web")
	m.publish(Addresses(ups), nil)
	first, second := Prepare(t, "", ""), Prepare(t, "", "")
	first.from(FastReports, sourceOf("manager", "AGGREGATED_DELTA_GRPC", m.grpc, ""))
	second.from("", sourceOf("first", "AGGREGATED_GRPC", first.GRPC, ""))
	first.Start()
	Checkers(t, first, 3)
	second.Start()
	planes := []*envoy.Process{
		envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-delta", ADS: second.GRPC, CDS: true, Delta: true, Route: "web"}),
		envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp", ADS: second.GRPC, CDS: true, Route: "web"}),
	}
	want := func(server *upstream.Server, health string) {
		t.Helper()
		for _, plane := range planes {
			AwaitPlane(t, plane, "web", server.Addr(), health)
		}
	}
	for _, server := range ups {
		want(server, "HEALTHY")
	}
	set(t, ups[1], upstream.Status(503))
	want(ups[1], "UNHEALTHY")
	for _, plane := range planes {
		if failed := Traffic(t, plane, 10); failed > 0 {
			t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
		}
	}
	// Whoever of them is gone, the Envoys keep what they had, also when the last
	// one starts anew meanwhile: it has kept what it was told.
	envoy.Eventually(t, Patience, "that to be kept", func() bool { return slices.Contains(kept(t, second), corev3.HealthStatus_UNHEALTHY) })
	first.Kill()
	second.Kill()
	second.Start()
	want(ups[0], "HEALTHY")
	want(ups[1], "UNHEALTHY")
	set(t, ups[2], upstream.Status(503))
	first.Start()
	want(ups[2], "UNHEALTHY")
	set(t, ups[1], upstream.Healthy())
	want(ups[1], "HEALTHY")
}

// kept returns the health of all endpoints that a coordinator has kept of what its
// management servers said.
func kept(t *testing.T, c *Coordinator) (all []corev3.HealthStatus) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(c.Dir, "data", "source-*.pb")) // the pattern is good
	for _, file := range files {
		content, err := os.ReadFile(file)
		var m discoveryv3.DiscoveryResponse
		if err == nil {
			err = proto.Unmarshal(content, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, packed := range m.GetResources() {
			var r discoveryv3.Resource
			var a endpointv3.ClusterLoadAssignment
			if err := packed.UnmarshalTo(&r); err != nil {
				t.Fatal(err)
			}
			if r.GetResource().UnmarshalTo(&a) != nil {
				continue // it is a cluster
			}
			for _, group := range a.GetEndpoints() {
				for _, e := range group.GetLbEndpoints() {
					all = append(all, e.GetHealthStatus())
				}
			}
		}
	}
	return all
}
