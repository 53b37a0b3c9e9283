package clusters

import (
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy"
	"hdsd/health"
	"hdsd/source"
)

// merge returns the first version of a cluster with the endpoints of the others, too, or itself if it has all of them;
// and how many endpoints it had to read. Nobody publishes the result, so weights and priorities need not make sense.
func merge(versions []*source.Cluster) (merged *source.Cluster, read int) {
	if len(versions) == 1 {
		return versions[0], 0
	}
	base := versions[0]
	message, found := base.Assignment.Message(), map[health.Endpoint]bool{}
	if message == nil {
		message = &endpointv3.ClusterLoadAssignment{ClusterName: base.Service()}
	}
	for i, group := range message.GetEndpoints() {
		read += len(group.GetLbEndpoints())
		lacking(found, group, i)
	}
	groups := len(message.GetEndpoints())
	for _, version := range versions[1:] {
		for i, group := range version.Assignment.Message().GetEndpoints() {
			read += len(group.GetLbEndpoints())
			if group.LbEndpoints = lacking(found, group, i); len(group.GetLbEndpoints()) > 0 {
				message.Endpoints = append(message.Endpoints, group)
			}
		}
	}
	if len(message.GetEndpoints()) == groups {
		return base, read
	}
	merged = new(source.Cluster)
	*merged = *base
	merged.Assignment = source.EncodeAssignment(message)
	return merged, read
}

// lacking returns the endpoints of a group that are not found yet, and notes them as found.
func lacking(found map[health.Endpoint]bool, group *endpointv3.LocalityLbEndpoints, index int) (added []*endpointv3.LbEndpoint) {
	locality := envoy.Locality(group.GetLocality())
	for i, e := range group.GetLbEndpoints() {
		if key := (health.Endpoint{Locality: locality, Address: envoy.AddressOf(e, index, i)}); !found[key] {
			found[key] = true
			added = append(added, e)
		}
	}
	return added
}
