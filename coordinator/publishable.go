package coordinator

import (
	"net/netip"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// publishable gives the assignment of a cluster as data planes get it: as the
// source gave it, but for endpoints that make an Envoy refuse everything that
// is sent along with them. Nil where the rest is no good either.
func publishable(from *source.Cluster) *endpointv3.ClusterLoadAssignment {
	given := from.Assignment
	if given == nil {
		return nil
	}
	message := given
	for i, group := range given.GetEndpoints() {
		if !slices.ContainsFunc(group.GetLbEndpoints(), func(e *endpointv3.LbEndpoint) bool { return !takable(from, e) }) {
			continue
		}
		if message == given {
			message = proto.CloneOf(given)
		}
		kept := message.GetEndpoints()[i]
		kept.LbEndpoints = slices.DeleteFunc(kept.GetLbEndpoints(), func(e *endpointv3.LbEndpoint) bool { return !takable(from, e) })
	}
	for _, group := range message.GetEndpoints() {
		if group.ValidateAll() != nil {
			return nil
		}
	}
	return message
}

// asItCame gives a cluster as the source gave it, but for endpoints within that
// make an Envoy refuse it. Nil where the rest is no good either.
func asItCame(from *source.Cluster, message *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	inside := from.Config.GetLoadAssignment()
	switch {
	case inside == nil || inside != from.Assignment || inside == message:
		return from.Config
	case message == nil:
		return nil
	}
	given := proto.CloneOf(from.Config)
	given.LoadAssignment = message
	return given
}

// takable tells whether an Envoy takes an endpoint by EDS. A name in place of
// an IP address in a STATIC cluster is nothing that any program could take;
// where endpoints came by EDS already, clients other than Envoy may, and it
// passes.
func takable(from *source.Cluster, e *endpointv3.LbEndpoint) bool {
	if e.ValidateAll() != nil {
		return false
	}
	at := e.GetEndpoint().GetAddress().GetSocketAddress()
	if from.Config == nil || from.Config.GetType() != clusterv3.Cluster_STATIC || from.Config.GetClusterType() != nil || at == nil || at.GetResolverName() != "" {
		return true
	}
	_, err := netip.ParseAddr(at.GetAddress())
	return err == nil
}
