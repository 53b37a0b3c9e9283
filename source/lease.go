package source

import endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

// Ended returns an assignment whose lease is over: it has no endpoints, as in an Envoy.
func Ended(name string) *Assignment {
	return EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name})
}
