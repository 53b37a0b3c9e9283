package catalog

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/source"
)

// place is where an endpoint stands in the assignment of a source.
type place struct{ locality, index int }

// twins are the endpoints of one address that an Envoy with a list of them, but not by EDS,
// counts as several.
type twins struct {
	priority uint32
	locality health.Locality
	address  string
	disabled bool // their active health check
}

// hasDuplicates tells whether the endpoints that clients would list themselves may have an
// address twice: then fewer are checked or excluded than there are.
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

// unite makes one endpoint, with the sum of the weights, of those that have one address in one
// locality: by EDS an Envoy takes only the first. It returns the places of the others; nil:
// there are none.
func unite(config *clusterv3.Cluster, given *endpointv3.ClusterLoadAssignment) (united *endpointv3.ClusterLoadAssignment, others map[place]bool) {
	united = proto.CloneOf(given)
	first := map[twins]*endpointv3.LbEndpoint{}
	for i, group := range united.GetEndpoints() {
		kept := group.GetLbEndpoints()[:0]
		for j, e := range group.GetLbEndpoints() {
			key := twins{
				group.GetPriority(), envoyaddr.Locality(group.GetLocality()), envoyaddr.AddressOf(e, i, j),
				e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck(),
			}
			switch {
			case !acceptable(config, e):
			case first[key] == nil:
				first[key] = e
			default:
				source.AddWeight(first[key], e)
				if others == nil {
					others = map[place]bool{}
				}
				others[place{i, j}] = true
				continue
			}
			kept = append(kept, e)
		}
		group.LbEndpoints = kept
	}
	return united, others
}
