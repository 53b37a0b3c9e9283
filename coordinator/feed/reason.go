package feed

import (
	"cmp"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"hdsd/catalog"
)

// NoEndpointsReason returns the reason why a cluster has no endpoints, by the present state of
// the sources. It is empty if the cluster has some. Only a whole reason has names of sources.
func (f *Feed) NoEndpointsReason(k *catalog.Cluster, whole bool) string {
	src := k.Source
	eds := src.Config.GetEdsClusterConfig().GetEdsConfig()
	path := cmp.Or(eds.GetPathConfigSource().GetPath(), eds.GetPath()) //nolint:staticcheck // a deprecated field still counts
	switch {
	case len(k.Endpoints) > 0:
		return ""
	case k.Rejected+src.Rejected != "":
		return cmp.Or(k.Rejected, src.Rejected)
	case src.Names != "" && src.Assignment != nil:
		return "DNS has no addresses for its names: " + src.Names
	case src.Assignment != nil:
		return emptyAssignment(k, whole)
	case src.EDS() && path != "":
		return fmt.Sprintf("its endpoints are in %s on the machines of data planes", path)
	case src.EDS():
		return f.noAssignmentReason(src.Service(), whole)
	default:
		return ownEndpoints(src.Config)
	}
}

// emptyAssignment returns the reason why an assignment has no endpoints.
func emptyAssignment(k *catalog.Cluster, whole bool) string {
	src := k.Source
	if k.PartlyElsewhere {
		return "its endpoints come by LEDS, which hdsd does not support"
	}
	if src.Config != nil && !src.EDS() {
		return "its load_assignment has none"
	}
	if !whole {
		return "its ClusterLoadAssignment has none"
	}
	return fmt.Sprintf("its ClusterLoadAssignment of source %s has none", src.EndpointSource())
}

// ownEndpoints returns the reason why a cluster that does not use EDS has no endpoints.
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

// noAssignmentReason returns the reason why no source has an assignment.
func (f *Feed) noAssignmentReason(service string, whole bool) string {
	if !whole {
		return fmt.Sprintf("no source has its ClusterLoadAssignment %q", service)
	}
	var reasons []string
	for _, o := range *f.open.Load() {
		if o.upstream == nil {
			continue
		}
		reason := o.upstream.MissingReason(service)
		if reason == "" {
			return fmt.Sprintf("its ClusterLoadAssignment has just come from source %s", o.name)
		}
		reasons = append(reasons, o.name+": "+reason)
	}
	if len(reasons) == 0 {
		return fmt.Sprintf("no source has a ClusterLoadAssignment with cluster_name: %s", service)
	}
	return fmt.Sprintf("no source has its ClusterLoadAssignment %q (%s)", service, strings.Join(reasons, "; "))
}
