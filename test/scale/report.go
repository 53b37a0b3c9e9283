package scale

import (
	"fmt"
	"iter"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy"
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

// newReport encodes that all of a specifier's endpoints are up. It writes field by field: a fleet
// that shares the processors with hdsd should cost little beside it.
func newReport(w *world, s *healthv3.HealthCheckSpecifier) (*report, error) {
	r := &report{world: w}
	flat, nested := 0, 0 // bytes
	clusters := make([]clusterPart, len(s.GetClusterHealthChecks()))
	for i, k := range s.GetClusterHealthChecks() {
		of := &clusters[i]
		of.size = sizeOf(clusterNameField, len(k.GetClusterName()))
		for _, group := range k.GetLocalityEndpoints() {
			in, err := r.part(group)
			if err != nil {
				return nil, err
			}
			of.groups = append(of.groups, in)
			of.size += sizeOf(localityEndpointsField, in.size)
			flat += in.entries
		}
		nested += sizeOf(clusterEndpointsField, of.size)
	}
	r.write(s, clusters, flat+nested)
	return r, nil
}

// Fields of a report (envoy.service.health.v3).
const (
	reportField = 2 // HealthCheckRequestOrEndpointHealthResponse.endpoint_health_response

	endpointsField        = 1 // EndpointHealthResponse.endpoints_health
	clusterEndpointsField = 2 // EndpointHealthResponse.cluster_endpoints_health

	clusterNameField       = 1 // ClusterEndpointsHealth.cluster_name
	localityEndpointsField = 2 // ClusterEndpointsHealth.locality_endpoints_health

	localityField        = 1 // LocalityEndpointsHealth.locality
	endpointsHealthField = 2 // LocalityEndpointsHealth.endpoints_health
)

func sizeOf(field protowire.Number, content int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(content)
}

// clusterPart is what a report says of a cluster, groupPart of one of its localities.
type clusterPart struct {
	size   int // bytes
	groups []groupPart
}

type groupPart struct {
	size, entries int // bytes: of all, and of the entries
	locality      []byte
	endpoints     int
}

// part adds the entries of a group.
func (r *report) part(group *healthv3.LocalityEndpoints) (groupPart, error) {
	locality, err := proto.Marshal(group.GetLocality())
	p := groupPart{locality: locality, endpoints: len(group.GetEndpoints())}
	for _, e := range group.GetEndpoints() {
		address := envoy.Address(e.GetAddress())
		endpoint, known := r.world.index[address]
		if !known {
			return p, fmt.Errorf("%s is to be checked, which is none of the endpoints", address)
		}
		r.entries = append(r.entries, entry{endpoint: endpoint})
		p.entries += sizeOf(endpointsHealthField, len(r.world.up[endpoint]))
	}
	p.size = p.entries
	if group.GetLocality() != nil {
		p.size += sizeOf(localityField, len(locality))
	}
	return p, err
}

// write writes the report, the size of whose content is known.
func (r *report) write(s *healthv3.HealthCheckSpecifier, clusters []clusterPart, size int) {
	b := make([]byte, 0, sizeOf(reportField, size))
	begin := func(field protowire.Number, size int) {
		b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
	}
	says := func(field protowire.Number, e *entry, list int) {
		up := r.world.up[e.endpoint]
		begin(field, len(up))
		e.at[list] = len(b)
		b = append(b, up...)
	}
	begin(reportField, size)
	for i := range r.entries {
		says(endpointsField, &r.entries[i], 0)
	}
	next := 0
	for i, k := range s.GetClusterHealthChecks() {
		begin(clusterEndpointsField, clusters[i].size)
		begin(clusterNameField, len(k.GetClusterName()))
		b = append(b, k.GetClusterName()...)
		for j, group := range k.GetLocalityEndpoints() {
			in := &clusters[i].groups[j]
			begin(localityEndpointsField, in.size)
			if group.GetLocality() != nil {
				begin(localityField, len(in.locality))
				b = append(b, in.locality...)
			}
			for range in.endpoints {
				says(endpointsHealthField, &r.entries[next], 1)
				next++
			}
		}
	}
	r.now = b
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
