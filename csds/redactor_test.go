package csds

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

func TestASharedConfigurationIsRedactedOnce(t *testing.T) {
	value := body(t, &clusterv3.Cluster{Name: "a", HealthChecks: []*corev3.HealthCheck{{HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{
		TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{Send: &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: "00"}}},
	}}}})().GetValue()
	r := &redactor{}
	first := r.shown(&anypb.Any{TypeUrl: resourcev3.ClusterType, Value: value})
	if second := r.shown(&anypb.Any{TypeUrl: resourcev3.ClusterType, Value: value}); first != second {
		t.Error("looked through twice")
	}
}
