package envoy

import (
	"cmp"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// IsEDS reports whether a cluster's endpoints come by EDS.
func IsEDS(c *clusterv3.Cluster) bool { return c.GetType() == clusterv3.Cluster_EDS }

// AssignmentName returns the name of the assignment that an EDS cluster takes; empty if its endpoints
// do not come by EDS.
func AssignmentName(c *clusterv3.Cluster) string {
	if !IsEDS(c) {
		return ""
	}
	return cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())
}
