package check

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
)

// statusKey is the metadata key of a report for the status code of the latest HTTP
// response.
const statusKey = "http_status_code"

type request = healthv3.HealthCheckRequestOrEndpointHealthResponse

// report returns the full report, in the specifier's order. Equal health gives equal
// bytes. Without clusters it is empty, which is a heartbeat.
func (p *pool) report() *request {
	if len(p.clusters) == 0 {
		return &request{}
	}
	r := &healthv3.EndpointHealthResponse{}
	metadata := map[uint16]*structpb.Struct{}
	for i := range p.clusters {
		c := &p.clusters[i]
		cluster := &healthv3.ClusterEndpointsHealth{ClusterName: c.name}
		for _, l := range c.localities {
			locality := &healthv3.LocalityEndpointsHealth{Locality: l.locality}
			for _, h := range l.hosts {
				locality.EndpointsHealth = append(locality.EndpointsHealth, p.healthOf(h, metadata))
			}
			cluster.LocalityEndpointsHealth = append(cluster.LocalityEndpointsHealth, locality)
			r.EndpointsHealth = append(r.EndpointsHealth, locality.GetEndpointsHealth()...)
		}
		if !p.reports.Flat {
			r.ClusterEndpointsHealth = append(r.ClusterEndpointsHealth, cluster)
		}
	}
	return &request{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{
		EndpointHealthResponse: r,
	}}
}

// healthOf returns the report of one endpoint. Endpoints share equal metadata.
func (p *pool) healthOf(h *host, metadata map[uint16]*structpb.Struct) *healthv3.EndpointHealth {
	health, code := h.view()
	e := &healthv3.EndpointHealth{Endpoint: h.spec.reported, HealthStatus: wire(health)}
	if code != 0 && !p.reports.WithoutCodes {
		if metadata[code] == nil {
			metadata[code] = &structpb.Struct{Fields: map[string]*structpb.Value{
				statusKey: structpb.NewNumberValue(float64(code)),
			}}
		}
		e.HealthMetadata = metadata[code]
	}
	return e
}

func wire(s health.Status) corev3.HealthStatus { return corev3.HealthStatus(s) }
