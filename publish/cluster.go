package publish

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// CanTakeOver reports whether a cluster's endpoints can be published by EDS. They can if the
// cluster lists them (STATIC), if it takes them by EDS, or if it is STRICT_DNS or LOGICAL_DNS
// and has only IP addresses, which are not hashed by their hostnames (an Envoy does that in
// STRICT_DNS clusters alone). Envoy itself finds the endpoints of any other cluster (one with
// names, ORIGINAL_DST, one of an extension). EDS cannot replace that, because it does not
// resolve names.
func CanTakeOver(c *clusterv3.Cluster) bool {
	if c.GetClusterType() != nil || c.GetCommonLbConfig().GetConsistentHashingLbConfig().GetUseHostnameForHashing() {
		return false
	}
	switch c.GetType() {
	case clusterv3.Cluster_STATIC, clusterv3.Cluster_EDS:
		return true
	case clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_LOGICAL_DNS:
		return !hasNames(c.GetLoadAssignment())
	default:
		return false
	}
}

// hasNames reports whether an address of an assignment has to be resolved.
func hasNames(a *endpointv3.ClusterLoadAssignment) bool {
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if isName(e.GetEndpoint().GetAddress()) {
				return true
			}
			for _, additional := range e.GetEndpoint().GetAdditionalAddresses() {
				if isName(additional.GetAddress()) {
					return true
				}
			}
		}
	}
	return false
}

func isName(a *corev3.Address) bool {
	address := a.GetSocketAddress()
	_, err := netip.ParseAddr(address.GetAddress())
	return address != nil && (err != nil || address.GetResolverName() != "")
}

// ByADS makes data planes take endpoints from their ADS stream.
func ByADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// TakeOver returns the form of a cluster that data planes get. A cluster that
// hdsd checks loses its health checks, so that data planes do not probe. It takes its
// endpoints by EDS from the given source, under the service name it had. A cluster that
// hdsd does not check (by is nil), or that is not CanTakeOver, is published unchanged.
// The given cluster does not change; its parts are shared.
func TakeOver(c *clusterv3.Cluster, source *corev3.ConfigSource) *clusterv3.Cluster {
	if source == nil || !CanTakeOver(c) {
		return c
	}
	published := shallow(c)
	published.HealthChecks = nil
	published.LoadAssignment = nil
	published.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	byEDS := new(clusterv3.Cluster_EdsClusterConfig)
	if c.GetType() == clusterv3.Cluster_EDS && c.GetEdsClusterConfig() != nil {
		byEDS = proto.CloneOf(c.GetEdsClusterConfig()) // with its service name
	}
	byEDS.EdsConfig = source
	published.EdsClusterConfig = byEDS
	return published
}

// WithHealthChecks returns a copy of a cluster with these health checks. The given cluster does
// not change; its parts are shared.
func WithHealthChecks(c *clusterv3.Cluster, checks []*corev3.HealthCheck) *clusterv3.Cluster {
	published := shallow(c)
	published.HealthChecks = checks
	return published
}

// shallow returns a copy of a cluster that shares its parts.
func shallow(c *clusterv3.Cluster) *clusterv3.Cluster {
	copied := new(clusterv3.Cluster)
	to, from := copied.ProtoReflect(), c.ProtoReflect()
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return copied
}
