package main

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func deltaResponse(nonce string, resources int) *discoveryv3.DeltaDiscoveryResponse {
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: resourcev3.EndpointType, Nonce: nonce}
	for range resources {
		m.Resources = append(m.Resources, &discoveryv3.Resource{Name: "cluster", Version: "1"})
	}
	return m
}

// checkAcknowledgement holds one of version 5 and nonce 7, by a subscriber of a and b.
func checkAcknowledgement(t *testing.T, delta bool, encoded []byte) {
	t.Helper()
	var got, want proto.Message
	if delta {
		got, want = &discoveryv3.DeltaDiscoveryRequest{}, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: "7"}
	} else {
		got = &discoveryv3.DiscoveryRequest{}
		want = &discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: "7", VersionInfo: "5", ResourceNames: []string{"a", "b"}}
	}
	if err := proto.Unmarshal(encoded, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("acknowledged by %v, %v; want %v", got, err, want)
	}
}
