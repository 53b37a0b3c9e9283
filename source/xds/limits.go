package xds

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/internal/envoyrules"
)

// Limits of a response. An empty message has two bytes on the wire and a hundred or
// more in memory. So messages are counted before any is decoded.
const (
	maxElements  = 1_000_000 // resources, removed names and errors of one response
	maxEndpoints = 1_000_000 // of one resource

	// The minimum average size of messages and endpoints. A few are free, so that small
	// responses pass.
	leastMessageBytes  = 4
	leastEndpointBytes = 8
	freeMessages       = 32

	// The most messages of one resource: so many, and more for each endpoint. It is decoded
	// before it is known whether it is valid.
	maxMessages      = 200_000
	endpointMessages = 32
)

const endpointName = "envoy.config.endpoint.v3.LbEndpoint"

// weight is the content of a message, counted on the wire.
type weight struct {
	bytes     int
	elements  int // of its own lists
	messages  int
	endpoints int
}

// weigh counts up to the limits. It ignores malformed bytes, which fail to decode
// anyway.
func weigh(of protoreflect.MessageDescriptor, data []byte) weight {
	w := weight{bytes: len(data)}
	w.add(of, data, 0)
	return w
}

func (w *weight) add(of protoreflect.MessageDescriptor, data []byte, depth int) {
	for len(data) > 0 && w.elements <= maxElements && w.endpoints <= maxEndpoints {
		number, wire, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return
		}
		n := protowire.ConsumeFieldValue(number, wire, data[tag:])
		if n < 0 {
			return
		}
		if field := of.Fields().ByNumber(number); field != nil {
			if depth == 0 && field.IsList() {
				w.elements++
			}
			if wire == protowire.BytesType && field.Message() != nil {
				w.message(field.Message(), data[tag:], depth+1)
			}
		}
		data = data[tag+n:]
	}
}

func (w *weight) message(of protoreflect.MessageDescriptor, data []byte, depth int) {
	w.messages++
	if of.FullName() == endpointName {
		w.endpoints++
	}
	if inner, n := protowire.ConsumeBytes(data); n > 0 && depth <= protowire.DefaultRecursionLimit {
		w.add(of, inner, depth)
	}
}

// excess says which limit the message exceeds; empty if none.
func (w *weight) excess() string {
	switch {
	case w.elements > maxElements:
		return fmt.Sprintf("it has more than %d elements, the limit for one response", maxElements)
	case w.endpoints > maxEndpoints:
		return fmt.Sprintf("it has more than %d endpoints, and no more are taken: make several of it", maxEndpoints)
	case w.endpoints > freeMessages+w.bytes/leastEndpointBytes:
		return fmt.Sprintf("it has %d endpoints in %d bytes: nearly all of them must be empty", w.endpoints, w.bytes)
	case w.messages > freeMessages+w.bytes/leastMessageBytes:
		return fmt.Sprintf("it has %d messages in %d bytes: nearly all of them must be empty", w.messages, w.bytes)
	default:
		return ""
	}
}

// Excess says which limit an encoded resource exceeds, so that it should not be decoded;
// empty if none.
func Excess(typeURL string, data []byte) string {
	w := weigh(resources[typeURL], data)
	return w.excessOfOne()
}

// excessOfOne is excess of a resource.
func (w *weight) excessOfOne() string {
	if excess := w.excess(); excess != "" {
		return excess
	}
	if most := maxMessages + endpointMessages*w.endpoints; w.messages > most {
		return fmt.Sprintf("it has %d messages with %d endpoints, and no more than %d are taken: make several of it", w.messages, w.endpoints, most)
	}
	return ""
}

// resources are the messages of each type.
var resources = map[string]protoreflect.MessageDescriptor{
	envoyrules.Cluster:    (&clusterv3.Cluster{}).ProtoReflect().Descriptor(),
	envoyrules.Assignment: (&endpointv3.ClusterLoadAssignment{}).ProtoReflect().Descriptor(),
}

// keepHead keeps only the strings and numbers of a response, for a NACK; no lists.
func keepHead(of protoreflect.MessageDescriptor, data []byte) (kept []byte) {
	for len(data) > 0 {
		number, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return kept
		}
		if field := of.Fields().ByNumber(number); field != nil && !field.IsList() && !field.IsMap() && field.Message() == nil {
			kept = append(kept, data[:n]...)
		}
		data = data[n:]
	}
	return kept
}

// weighJSON counts JSON text in the same way: each innermost value is a message, and so
// is each comma. The outer two levels count as elements.
func weighJSON(text []byte) weight {
	w := weight{bytes: len(text)}
	depth, quoted := 0, false
	for i := 0; i < len(text) && w.elements <= maxElements; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			w.messages++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			w.messages++
			if depth <= 2 {
				w.elements++
			}
		}
	}
	return w
}
