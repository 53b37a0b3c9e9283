package envoy

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

func TestTheAssignmentOfACluster(t *testing.T) {
	byEDS := &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	service := &clusterv3.Cluster_EdsClusterConfig{ServiceName: "svc"}
	for want, c := range map[string]*clusterv3.Cluster{
		"web": {Name: "web", ClusterDiscoveryType: byEDS},
		"svc": {Name: "web", ClusterDiscoveryType: byEDS, EdsClusterConfig: service},
		"":    {Name: "web", EdsClusterConfig: service},
	} {
		if got := AssignmentName(c); got != want || IsEDS(c) != (want != "") {
			t.Errorf("%v takes its endpoints from %q (by EDS: %t), want %q", c, got, IsEDS(c), want)
		}
	}
}
