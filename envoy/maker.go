package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// EndpointMaker makes the messages of many endpoints. They share memory: while one is in use, those
// of its batch stay.
type EndpointMaker struct {
	spare []plain
	batch int // number of endpoints in the last allocation
}

// plain is the messages of one endpoint.
type plain struct {
	lb       endpointv3.LbEndpoint
	inside   endpointv3.LbEndpoint_Endpoint
	endpoint endpointv3.Endpoint
	address  corev3.Address
	kind     corev3.Address_SocketAddress
	socket   corev3.SocketAddress
	port     corev3.SocketAddress_PortValue
}

// largestBatch bounds the number of endpoints in an allocation.
const largestBatch = 16

// Endpoint returns an endpoint that is an address and a port.
func (m *EndpointMaker) Endpoint(host string, port uint32) *endpointv3.LbEndpoint {
	if len(m.spare) == 0 {
		m.batch = min(max(2*m.batch, 1), largestBatch)
		m.spare = make([]plain, m.batch)
	}
	e := &m.spare[0]
	m.spare = m.spare[1:]
	e.port.PortValue = port
	e.socket.Address, e.socket.PortSpecifier = host, &e.port
	e.kind.SocketAddress = &e.socket
	e.address.Address = &e.kind
	e.endpoint.Address = &e.address
	e.inside.Endpoint = &e.endpoint
	e.lb.HostIdentifier = &e.inside
	return &e.lb
}
