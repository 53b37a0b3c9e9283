package xds

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/envoy/rules"
)

// TestTooManyEndpointsInOneCluster refuses that assignment alone.
func TestTooManyEndpointsInOneCluster(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "1", wrap("web", "1", eds("web", "")), wrap("db", "1", inline("db", "10.0.0.1", "10.0.0.2", "10.0.0.3"))))
		has(t, "a cluster", p.next().GetErrorDetail().GetMessage(), "1 of 2 resources refused: db (it has 3 endpoints, and no more than 2 of one cluster are taken")
		p.next()
		p.send(change(rules.Assignment, "2", wrap("web", "1", endpoints("web", "10.0.0.1", "10.0.0.2"))))
		equal(t, "two", p.next().GetErrorDetail() == nil, true)
		p.send(change(rules.Assignment, "3", wrap("web", "2", endpoints("web", "10.0.0.1", "10.0.0.2", "10.0.0.3"))))
		has(t, "three", p.next().GetErrorDetail().GetMessage(), "limits.max_cluster_endpoints")
		equal(t, "in use", r.Status().Types[1].Resources[0].Version, "1")
	}, func(o *Options) { o.MaxClusterEndpoints = 2 })
}
