package endpointpb

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// Maker makes the messages of many endpoints. They share memory: while one is in use, some
// of the others stay.
type Maker struct{ room []plain }

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

// rooms is how many endpoints there is room for at a time.
const rooms = 16

// Endpoint returns an endpoint that is an address and a port.
func (m *Maker) Endpoint(host string, port uint32) *endpointv3.LbEndpoint {
	if len(m.room) == 0 {
		m.room = make([]plain, rooms)
	}
	e := &m.room[0]
	m.room = m.room[1:]
	e.port.PortValue = port
	e.socket.Address, e.socket.PortSpecifier = host, &e.port
	e.kind.SocketAddress = &e.socket
	e.address.Address = &e.kind
	e.at.Address = &e.address
	e.inside.Endpoint = &e.at
	e.lb.HostIdentifier = &e.inside
	return &e.lb
}
