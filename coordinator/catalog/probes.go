package catalog

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/hds/specifier"
	"hdsd/health"
)

// probe is all that a checker is sent of one endpoint.
type probe struct {
	form     *healthv3.ClusterHealthCheck // how to check it; its localities do not matter
	endpoint *endpointv3.Endpoint
}

// probes gives what checkers are sent of a cluster, by endpoint.
func (c *Cluster) probes() []probe {
	items := make([]specifier.Item, len(c.Checked.Endpoints))
	for i := range items {
		items[i] = specifier.Item{Cluster: c.Checked, Endpoint: i, ID: health.EndpointID(i)}
	}
	built := specifier.Build(items, 0)
	probes, n := make([]probe, len(items)), 0
	for _, form := range built.Message.GetClusterHealthChecks() {
		for _, group := range form.GetLocalityEndpoints() {
			for _, endpoint := range group.GetEndpoints() {
				probes[built.Order[n]] = probe{form, endpoint}
				n++
			}
		}
	}
	return probes
}

// ChangedProbes tells which endpoints of after, by index, checkers are sent
// differently than of before, so that they take them for new ones. It returns nil
// if there are none. It is exact: a checker reports again only what has changed.
func ChangedProbes(before, after *Cluster) []bool {
	if before == nil || before.Checked == nil || after.Checked == nil {
		return nil
	}
	was, is := before.probes(), after.probes()
	earlier := make(map[health.Hash]int, len(was))
	for i, hash := range before.Hashes {
		earlier[hash] = i
	}
	forms := map[[2]*healthv3.ClusterHealthCheck]bool{}
	var found []bool
	for i, hash := range after.Hashes {
		at, ok := earlier[hash]
		if !ok {
			continue // the endpoint is new
		}
		a, b := was[at], is[i]
		pair := [2]*healthv3.ClusterHealthCheck{a.form, b.form}
		same, known := forms[pair]
		if !known {
			same = sameForm(a.form, b.form)
			forms[pair] = same
		}
		if same && (a.endpoint == b.endpoint || proto.Equal(a.endpoint, b.endpoint)) {
			continue
		}
		if found == nil {
			found = make([]bool, len(after.Hashes))
		}
		found[i] = true
	}
	return found
}

// sameForm tells whether two forms check endpoints the same way.
func sameForm(a, b *healthv3.ClusterHealthCheck) bool {
	return proto.Equal(withoutEndpoints(a), withoutEndpoints(b))
}

func withoutEndpoints(c *healthv3.ClusterHealthCheck) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: c.GetClusterName(), HealthChecks: c.GetHealthChecks(),
		TransportSocketMatches: c.GetTransportSocketMatches(), UpstreamBindConfig: c.GetUpstreamBindConfig(),
	}
}
