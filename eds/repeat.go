package eds

import (
	"hash/maphash"

	"hdsd/envoy/fields"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// nameTag is the tag of a name in the usual encoding. Both kinds of requests have their names in
// one field.
const nameTag = fields.RequestNames<<3 | byte(protowire.BytesType)

// span identifies the encoded names of a request, if they are consecutive. Otherwise its size is
// 0.
type span struct {
	size int
	sum  uint64 // a hash of the bytes
	key  string // the bytes, if a group keeps them anyway; else empty
}

var spanSeed = maphash.MakeSeed()

func spanOf(encoded []byte) span {
	return span{size: len(encoded), sum: maphash.Bytes(spanSeed, encoded)}
}

// equals reports whether both identify the same names.
func (s span) equals(other span) bool { return s.size == other.size && s.sum == other.sum }

// begins reports whether encoded begins with the names of the span.
func (s span) begins(encoded []byte) bool {
	switch {
	case s.size == 0 || s.size > len(encoded):
		return false
	case s.key != "":
		return s.key == string(encoded[:s.size])
	default:
		return s.equals(spanOf(encoded[:s.size]))
	}
}

// stateMessage is a state-of-the-world request as grpc passes it on. Each ACK repeats all names:
// they are compared with the last ones of the type before they are decoded.
type stateMessage struct {
	counted
	stream  *stream
	request *discoveryv3.DiscoveryRequest
	names   span
	repeats bool    // the names are the last ones of the type; request does not have them
	ack     request // instead of request, if isACK
	isACK   bool
	shared  shared
}

// reset prepares it for the next request. Nothing of the last one is kept.
func (m *stateMessage) reset() {
	m.refusal, m.names, m.repeats, m.ack, m.isACK, m.shared = nil, span{}, false, request{}, false, shared{}
	proto.Reset(m.request)
}

func (st *stream) newStateMessage() *stateMessage {
	m := &stateMessage{stream: st, request: new(discoveryv3.DiscoveryRequest)}
	m.counted = counted{limiter: st.server.limiter, message: m.request, decodeSmall: m.decode}
	return m
}

// decode decodes a request that is not large.
func (m *stateMessage) decode(encoded []byte) error {
	offset := firstName(encoded)
	if m.repeats = m.decodeRest(encoded[:offset], encoded[offset:]); m.repeats {
		return nil
	}
	size, names := sizeOfNames(encoded[offset:])
	err := m.shared.decode(m.stream, encoded, offset, m.request)
	if m.shared.group != nil || len(m.request.GetResourceNames()) == names { // it has them all
		m.names = spanOf(encoded[offset : offset+size])
	}
	return err
}

// decodeRest decodes everything but the names, if they equal those of the last request of the
// type, and reports whether they do.
func (m *stateMessage) decodeRest(before, names []byte) bool {
	found := m.stream.lastNames(names)
	if found.size == 0 {
		return false
	}
	if u, nonce := m.stream.acknowledges(&stateACK, before, names[found.size:]); u != nil && found.equals(u.requests.names) {
		m.ack = request{typeURL: u.table.typeURL, nonce: nonce, repeats: true}
		m.names, m.isACK = found, true
		return true
	}
	options := proto.UnmarshalOptions{Merge: true}
	if options.Unmarshal(before, m.request) != nil || options.Unmarshal(names[found.size:], m.request) != nil {
		return false
	}
	if len(m.request.GetResourceNames())+len(m.request.GetResourceLocators()) > 0 {
		return false // there are more
	}
	m.names = found
	return found.equals(m.stream.lastNamesOf(m.request.GetTypeUrl()))
}

// firstName returns the offset of a request's first name, or its length.
func firstName(encoded []byte) (offset int) {
	for offset < len(encoded) {
		f, err := fields.Next(encoded[offset:])
		if err != nil {
			return len(encoded)
		}
		if f.Is(fields.RequestNames) {
			break
		}
		offset += len(f.Raw)
	}
	return offset
}

// sizeOfNames returns the bytes and the number of the names at the beginning of a part of a
// request.
func sizeOfNames(encoded []byte) (size, names int) {
	for size < len(encoded) && encoded[size] == nameTag {
		_, n := protowire.ConsumeBytes(encoded[size+1:])
		if n < 0 {
			break
		}
		size += 1 + n
		names++
	}
	return size, names
}

// lastNames returns the names of the last request of either type that encoded begins with; of
// two, the longer. The type follows the names on the wire, so it is not known yet.
func (st *stream) lastNames(encoded []byte) (longest span) {
	clusters, assignments := st.pair()
	for _, u := range []*subscription{clusters, assignments} {
		if u != nil && u.requests.names.size > longest.size && u.requests.names.begins(encoded) {
			longest = u.requests.names
		}
	}
	return longest
}

// lastNamesOf returns the names of the last request of a type.
func (st *stream) lastNamesOf(typeURL string) span {
	clusters, assignments := st.pair()
	for _, u := range []*subscription{clusters, assignments} {
		if u != nil && u.table.typeURL == st.typeOf(typeURL) {
			return u.requests.names
		}
	}
	return span{}
}
