package endpointpb

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Maker makes the messages of many endpoints. They share memory: while one is in use, those
// of its batch stay.
type Maker struct {
	spare []plain
	batch int // how many endpoints memory was last allocated for
}

// plain is the messages of one endpoint.
type plain struct {
	lb      endpointv3.LbEndpoint
	inside  endpointv3.LbEndpoint_Endpoint
	at      endpointv3.Endpoint
	address corev3.Address
	kind    corev3.Address_SocketAddress
	socket  corev3.SocketAddress
	port    corev3.SocketAddress_PortValue
}

// largestBatch is how many endpoints memory is allocated for at a time, where there are many.
const largestBatch = 16

// Endpoint returns an endpoint that is an address and a port.
func (m *Maker) Endpoint(host string, port uint32) *endpointv3.LbEndpoint {
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
	e.at.Address = &e.address
	e.inside.Endpoint = &e.at
	e.lb.HostIdentifier = &e.inside
	return &e.lb
}
