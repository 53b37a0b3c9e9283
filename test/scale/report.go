package scale

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/internal/envoyaddr"
)

// report is a checker's full report on one specifier as Envoy writes it: each
// endpoint in a flat list, and again by cluster and locality.
type report struct {
	world   *world
	now     []byte // not changed once given out
	entries []entry
}

// entry is what a report says of one endpoint, and where.
type entry struct {
	endpoint int
	down     bool
	at       [2]int // where its bytes begin: in the flat list, and in the nested one
}

// newReport encodes that all of a specifier's endpoints are up.
func newReport(w *world, s *healthv3.HealthCheckSpecifier) (*report, error) {
	up, each := composed(s)
	encoded, err := proto.Marshal(up)
	if err != nil {
		return nil, err
	}
	r := &report{world: w, now: encoded, entries: make([]entry, len(each))}
	from := 0
	for list := range 2 {
		for i, h := range each {
			address := envoyaddr.Address(h.GetEndpoint().GetAddress())
			endpoint, known := w.index[address]
			if !known {
				return nil, fmt.Errorf("%s is to be checked, which is none of the endpoints", address)
			}
			at := bytes.Index(encoded[from:], w.up[endpoint])
			if at < 0 {
				return nil, fmt.Errorf("a report has %s not twice", address)
			}
			r.entries[i].endpoint, r.entries[i].at[list] = endpoint, from+at
			from += at + len(w.up[endpoint])
		}
	}
	return r, nil
}

// composed is the report in which all endpoints are up, and what it says of
// each.
func composed(s *healthv3.HealthCheckSpecifier) (*healthv3.HealthCheckRequestOrEndpointHealthResponse, []*healthv3.EndpointHealth) {
	all := &healthv3.EndpointHealthResponse{}
	for _, cluster := range s.GetClusterHealthChecks() {
		of := &healthv3.ClusterEndpointsHealth{ClusterName: cluster.GetClusterName()}
		for _, group := range cluster.GetLocalityEndpoints() {
			in := &healthv3.LocalityEndpointsHealth{Locality: group.GetLocality()}
			for _, e := range group.GetEndpoints() {
				in.EndpointsHealth = append(in.EndpointsHealth, healthOf(e.GetAddress(), corev3.HealthStatus_HEALTHY, answersUp))
			}
			all.EndpointsHealth = append(all.EndpointsHealth, in.GetEndpointsHealth()...)
			of.LocalityEndpointsHealth = append(of.LocalityEndpointsHealth, in)
		}
		all.ClusterEndpointsHealth = append(all.ClusterEndpointsHealth, of)
	}
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{EndpointHealthResponse: all},
	}, all.GetEndpointsHealth()
}

// What endpoints answer, as reports have it.
var answersUp, answersDown = details(200), details(503)

func details(code float64) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"http_status_code": structpb.NewNumberValue(code)}}
}

func healthOf(address *corev3.Address, status corev3.HealthStatus, answers *structpb.Struct) *healthv3.EndpointHealth {
	return &healthv3.EndpointHealth{Endpoint: &endpointv3.Endpoint{Address: address}, HealthStatus: status, HealthMetadata: answers}
}

// next says how things are now.
func (r *report) next() []byte {
	return r.patch(func(yield func(int) bool) {
		for i := range r.entries {
			if e := &r.entries[i]; r.world.failing[e.endpoint].Load() != e.down && !yield(i) {
				return
			}
		}
	})
}

// patch changes what is said of some entries.
func (r *report) patch(of iter.Seq[int]) []byte {
	fresh := false
	for i := range of {
		e := &r.entries[i]
		if e.down = !e.down; !fresh {
			r.now, fresh = slices.Clone(r.now), true
		}
		says := r.world.up[e.endpoint]
		if e.down {
			says = r.world.down[e.endpoint]
		}
		for _, at := range e.at {
			copy(r.now[at:], says) // of the same length
		}
	}
	return r.now
}
