package envoyrules

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Fields of a Cluster, of its assignment and of a locality, on the way to endpoints.
const (
	loadAssignmentField = 33
	endpointsField      = 2
	lbEndpointsField    = 2
)

// CountEncoded counts the endpoints of an encoded Cluster or ClusterLoadAssignment
// without decoding it. It ignores malformed bytes, which fail to decode anyway.
func CountEncoded(typeURL string, data []byte) int {
	if typeURL == Cluster {
		return count(data, loadAssignmentField, endpointsField, lbEndpointsField)
	}
	return count(data, endpointsField, lbEndpointsField)
}

// TooMany says that a cluster has too many endpoints, and how to put that right.
func TooMany(has, most int) string {
	return fmt.Sprintf("it has %d endpoints, and no more than %d of one cluster are taken: make several clusters of it, "+
		"or raise limits.max_cluster_endpoints in hdsd's configuration and restart it", has, most)
}

// count counts the messages at a path of fields.
func count(data []byte, path ...protowire.Number) (n int) {
	for len(data) > 0 {
		number, wire, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return n
		}
		size := protowire.ConsumeFieldValue(number, wire, data[tag:])
		if size < 0 {
			return n
		}
		if number == path[0] && wire == protowire.BytesType {
			if len(path) == 1 {
				n++
			} else if inner, ok := protowire.ConsumeBytes(data[tag:]); ok > 0 {
				n += count(inner, path[1:]...)
			}
		}
		data = data[tag+size:]
	}
	return n
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
		n += len(l.GetLbEndpoints()) + count(l.ProtoReflect().GetUnknown(), lbEndpointsField) // encoded ones, too
	}
	return n
}
