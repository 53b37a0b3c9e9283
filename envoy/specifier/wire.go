package specifier

import (
	"math"
	"net"
	"strconv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy"
	"hdsd/envoy/fields"
)

// Fields of HealthCheckSpecifier and ClusterHealthCheck.
const specifierClusters, clusterLocalities = 1, 3

// Encode encodes the message with more clusters after its own. It has an error only if the
// message cannot be sent at all.
func (s *Specifier) Encode(extra ...*healthv3.ClusterHealthCheck) ([]byte, error) {
	encoded := make([]byte, 0, s.Size()/2)
	e := encoder{specifier: s}
	for i := range s.Clusters {
		if err := e.encode(&s.Clusters[i]); err != nil {
			return nil, err
		}
		encoded = fields.AppendBytes(encoded, specifierClusters, e.part)
	}
	rest, err := deterministic.Marshal(&healthv3.HealthCheckSpecifier{ClusterHealthChecks: extra, Interval: durationpb.New(s.Interval)})
	return append(encoded, rest...), err
}

var deterministic = proto.MarshalOptions{Deterministic: true}

// encoder encodes the parts of a specifier one by one. It reuses its memory: there may be a
// thousand small parts.
type encoder struct {
	specifier *Specifier
	entry     int // the next part's first

	part, group, locality []byte // what was encoded last
}

func (e *encoder) encode(p *Part) (err error) {
	if e.part, err = deterministic.MarshalAppend(e.part[:0], p.Head); err != nil {
		return err
	}
	for _, g := range p.Localities {
		if err := e.encodeGroup(g); err != nil {
			return err
		}
		e.part = fields.AppendBytes(e.part, clusterLocalities, e.group)
	}
	return nil
}

func (e *encoder) encodeGroup(g Group) (err error) {
	e.group = e.group[:0]
	if g.Locality != nil {
		if e.locality, err = deterministic.MarshalAppend(e.locality[:0], g.Locality); err != nil {
			return err
		}
		e.group = fields.AppendBytes(e.group, fields.LocalityName, e.locality)
	}
	for range g.Entries {
		if e.group, err = e.specifier.appendEntry(e.group, e.entry); err != nil {
			return err
		}
		e.entry++
	}
	return nil
}

// appendEntry appends the endpoint of an entry.
func (s *Specifier) appendEntry(b []byte, entry int) ([]byte, error) {
	if special := s.Special[entry]; special != nil {
		wire, err := deterministic.Marshal(special)
		return fields.AppendBytes(b, fields.LocalityEndpoints, wire), err
	}
	host, port := hostPort(s.Addresses[entry])
	b = fields.AppendHead(b, fields.LocalityEndpoints, envoy.EndpointSize(len(host), port))
	return envoy.AppendEndpoint(b, host, port), nil
}

// Size estimates the bytes of the encoded message.
func (s *Specifier) Size() int {
	const perEntry, cluster = 32, 160 // beside the address
	size := cluster * len(s.Clusters)
	for _, address := range s.Addresses {
		size += perEntry + len(address)
	}
	return size
}

// Message returns the message. It shares parts, and must not be changed.
func (s *Specifier) Message() *healthv3.HealthCheckSpecifier {
	m := &healthv3.HealthCheckSpecifier{Interval: durationpb.New(s.Interval)}
	entry := 0
	for i := range s.Clusters {
		m.ClusterHealthChecks = append(m.ClusterHealthChecks, s.clusterMessage(&s.Clusters[i], &entry))
	}
	return m
}

// clusterMessage returns the message of a part. entry is the part's first entry, and then the
// next part's.
func (s *Specifier) clusterMessage(p *Part, entry *int) *healthv3.ClusterHealthCheck {
	m := p.Empty()
	var maker envoy.EndpointMaker
	for _, g := range p.Localities {
		group := &healthv3.LocalityEndpoints{Locality: g.Locality}
		for range g.Entries {
			e := s.Special[*entry]
			if e == nil {
				e = endpointOf(&maker, s.Addresses[*entry])
			}
			group.Endpoints = append(group.Endpoints, e)
			*entry++
		}
		m.LocalityEndpoints = append(m.LocalityEndpoints, group)
	}
	return m
}

// Empty returns the message of a cluster without its localities.
func (p *Part) Empty() *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: p.Head.GetClusterName(), HealthChecks: p.Head.GetHealthChecks(),
		TransportSocketMatches: p.Head.GetTransportSocketMatches(),
	}
}

// endpointOf returns the endpoint of an address that is an IP address and a port.
func endpointOf(m *envoy.EndpointMaker, address string) *endpointv3.Endpoint {
	host, port := hostPort(address)
	return m.Endpoint(host, uint32(min(port, math.MaxUint16))).GetEndpoint()
}

// hostPort splits the address of a plain endpoint.
func hostPort(address string) (host string, port uint64) {
	host, digits, _ := net.SplitHostPort(address) // the translation made it of the two
	port, _ = strconv.ParseUint(digits, 10, 16)
	return host, port
}
