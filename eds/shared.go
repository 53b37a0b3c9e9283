package eds

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
)

// shared is the names of a stream's first request for assignments. If others have requested the
// same names, they are not decoded.
type shared struct {
	key   string // the names on the wire; empty if they make no group
	names int    // their number
	group *group // nil: the message has the names
}

// decode decodes a request, given the offset of its first name.
func (s *shared) decode(st *stream, encoded []byte, offset int, m proto.Message) error {
	size, names := sizeOfNames(encoded[offset:])
	if _, assignments := st.pair(); assignments == nil && names >= st.server.fewestShared {
		key := encoded[offset : offset+size]
		if g := st.server.published.assignments.groupOf(key); g != nil && st.decodeRest(encoded[:offset], encoded[offset+size:], m) {
			s.key, s.group = g.key, g
			return nil
		}
		s.key, s.names = string(key), names
	}
	proto.Reset(m)
	return proto.Unmarshal(encoded, m)
}

// decodeRest decodes the parts around the names of a request, and reports whether it requests
// assignments, and nothing else.
func (st *stream) decodeRest(before, after []byte, m proto.Message) bool {
	proto.Reset(m)
	options := proto.UnmarshalOptions{Merge: true}
	if options.Unmarshal(before, m) != nil || options.Unmarshal(after, m) != nil {
		return false
	}
	typeURL, more := "", 0
	switch m := m.(type) {
	case *discoveryv3.DeltaDiscoveryRequest:
		typeURL, more = m.GetTypeUrl(), len(m.GetResourceNamesSubscribe())+len(m.GetResourceLocatorsSubscribe())
	case *discoveryv3.DiscoveryRequest:
		typeURL, more = m.GetTypeUrl(), len(m.GetResourceNames())+len(m.GetResourceLocators())
	}
	return more == 0 && st.typeOf(typeURL) == st.server.published.assignments.typeURL
}

// addTo adds the names to a request.
func (s *shared) addTo(r *request) {
	switch {
	case s.group != nil:
		r.key, r.names, r.list = s.key, s.group.names, s.group.list
	case len(r.names) == s.names: // the key has them all
		r.key = s.key
	}
}

// deltaMessage is a delta request as grpc passes it on.
type deltaMessage struct {
	counted
	request *discoveryv3.DeltaDiscoveryRequest
	ack     request // instead of request, if isACK
	isACK   bool
	shared  shared
}

// reset prepares it for the next request. Nothing of the last one is kept.
func (m *deltaMessage) reset() {
	m.refusal, m.ack, m.isACK, m.shared = nil, request{}, false, shared{}
	proto.Reset(m.request)
}

func (st *stream) newDeltaMessage() *deltaMessage {
	m := &deltaMessage{request: new(discoveryv3.DeltaDiscoveryRequest)}
	m.counted = counted{limiter: st.server.limiter, message: m.request, decodeSmall: func(encoded []byte) error {
		if u, nonce := st.acknowledges(&deltaACK, encoded); u != nil {
			m.ack, m.isACK = request{typeURL: u.table.typeURL, nonce: nonce}, true
			return nil
		}
		return m.shared.decode(st, encoded, firstName(encoded), m.request)
	}}
	return m
}
