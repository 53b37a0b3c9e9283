package feed

import (
	"cmp"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/coordinator/catalog"
)

// NoEndpointsReason says why a cluster has no endpoints, by what the sources know at
// the moment. It is empty if the cluster has some.
func (f *Feed) NoEndpointsReason(k *catalog.Cluster) string {
	from := k.Source
	eds := from.Config.GetEdsClusterConfig().GetEdsConfig()
	path := cmp.Or(eds.GetPathConfigSource().GetPath(), eds.GetPath()) //nolint:staticcheck // a deprecated field still counts
	switch {
	case len(k.Endpoints) > 0:
		return ""
	case k.Rejected+from.Rejected != "":
		return cmp.Or(k.Rejected, from.Rejected)
	case from.Names != "" && from.Assignment != nil:
		return "DNS has no addresses for its names: " + from.Names
	case from.Assignment != nil:
		return emptyAssignment(k)
	case from.EDS() && path != "":
		return fmt.Sprintf("its endpoints are in %s on the machines of data planes", path)
	case from.EDS():
		return f.noAssignmentReason(from.Service())
	default:
		return ownEndpoints(from.Config)
	}
}

// emptyAssignment says why an assignment gives no endpoints.
func emptyAssignment(k *catalog.Cluster) string {
	from := k.Source
	if k.PartlyElsewhere {
		return "its endpoints come by LEDS, which hdsd does not support"
	}
	if from.Config != nil && !from.EDS() {
		return "its load_assignment has none"
	}
	return fmt.Sprintf("its ClusterLoadAssignment of source %s has none", from.EndpointSource())
}

// ownEndpoints says why a cluster that does not use EDS has no endpoints.
func ownEndpoints(config *clusterv3.Cluster) string {
	switch kind := config.GetClusterDiscoveryType().(type) {
	case *clusterv3.Cluster_ClusterType:
		return fmt.Sprintf("data planes find its endpoints themselves, as its cluster_type is %s", kind.ClusterType.GetName())
	case *clusterv3.Cluster_Type:
		if kind.Type == clusterv3.Cluster_ORIGINAL_DST {
			return "data planes find its endpoints themselves, as its type is ORIGINAL_DST"
		}
	}
	return "it has no load_assignment"
}

// noAssignmentReason says why no source has an assignment.
func (f *Feed) noAssignmentReason(service string) string {
	var why []string
	for _, one := range *f.open.Load() {
		if one.upstream == nil {
			continue
		}
		reason := one.upstream.MissingReason(service)
		if reason == "" {
			return fmt.Sprintf("its ClusterLoadAssignment has just come from source %s", one.name)
		}
		why = append(why, one.name+": "+reason)
	}
	if len(why) == 0 {
		return fmt.Sprintf("no source has a ClusterLoadAssignment with cluster_name: %s", service)
	}
	return fmt.Sprintf("no source has its ClusterLoadAssignment %q (%s)", service, strings.Join(why, "; "))
}
