package rules

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
)

// CountEncoded counts the endpoints of an encoded Cluster or ClusterLoadAssignment
// without decoding it. It ignores malformed bytes, which fail to decode anyway.
func CountEncoded(typeURL string, data []byte) int {
	if typeURL == Cluster {
		return fields.Occurrences(data, fields.ClusterAssignment, fields.AssignmentLocalities, fields.LocalityEndpoints)
	}
	return fields.Occurrences(data, fields.AssignmentLocalities, fields.LocalityEndpoints)
}

// TooMany describes an excess of endpoints in a cluster, and the remedy.
func TooMany(count, limit int) string {
	return fmt.Sprintf("it has %d endpoints, and no more than %d of one cluster are taken: make several clusters of it, "+
		"or raise limits.max_cluster_endpoints in hdsd's configuration and restart it", count, limit)
}

// Count counts the endpoints of a Cluster or ClusterLoadAssignment.
func Count(m proto.Message) (n int) {
	var a *endpointv3.ClusterLoadAssignment
	switch m := m.(type) {
	case *clusterv3.Cluster:
		a = m.GetLoadAssignment()
	case *endpointv3.ClusterLoadAssignment:
		a = m
	}
	for _, l := range a.GetEndpoints() {
		n += len(l.GetLbEndpoints()) + fields.Occurrences(l.ProtoReflect().GetUnknown(), fields.LocalityEndpoints) // encoded ones, too
	}
	return n
}
