package catalog

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/health"
	"hdsd/source"
)

// place is the position of an endpoint in the assignment of a source.
type place struct{ locality, index int }

// twins are the endpoints of one address that an Envoy counts as several in a list, but not by
// EDS.
type twins struct {
	priority uint32
	locality health.Locality
	address  string
	disabled bool // whether the source disables their active health check
}

// hasDuplicates reports whether the endpoints that clients would list themselves may have an
// address twice: then fewer are checked or excluded than the list has.
func (c *Cluster) hasDuplicates(given *endpointv3.ClusterLoadAssignment) bool {
	if c.byEDS == nil || c.Source.EDS() {
		return false
	}
	size := 0
	for _, group := range given.GetEndpoints() {
		size += len(group.GetLbEndpoints())
	}
	return size > len(c.Checked.Endpoints)+len(c.Checked.Excluded)
}

// unite merges the endpoints with one address in one locality into one, with the sum of their
// weights: by EDS an Envoy takes only the first. It returns the places of the others; nil if
// there are none.
func unite(config *clusterv3.Cluster, given *endpointv3.ClusterLoadAssignment) (united *endpointv3.ClusterLoadAssignment, merged map[place]bool) {
	united = proto.CloneOf(given)
	first := map[twins]*endpointv3.LbEndpoint{}
	for i, group := range united.GetEndpoints() {
		remaining := group.GetLbEndpoints()[:0]
		for j, e := range group.GetLbEndpoints() {
			key := twins{
				group.GetPriority(), envoy.Locality(group.GetLocality()), envoy.AddressOf(e, i, j),
				e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck(),
			}
			switch {
			case !acceptable(config, e):
			case first[key] == nil:
				first[key] = e
			default:
				source.AddWeight(first[key], e)
				if merged == nil {
					merged = map[place]bool{}
				}
				merged[place{i, j}] = true
				continue
			}
			remaining = append(remaining, e)
		}
		group.LbEndpoints = remaining
	}
	return united, merged
}
