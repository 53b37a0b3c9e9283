package rules

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/envoy/fields"
)

// Limits of a response. An empty message has two bytes on the wire and a hundred or more in
// memory, so messages are counted before any is decoded.
const (
	MaxElements  = 1_000_000 // resources, removed names and errors of one response
	MaxEndpoints = 1_000_000 // of one resource

	// The minimum average size of messages and endpoints. A few are free, so that small
	// responses pass.
	leastMessageBytes  = 4
	leastEndpointBytes = 8
	freeMessages       = 32

	// The most messages of one resource: so many, and more for each endpoint. It is decoded
	// before its validity is known.
	maxMessages      = 200_000
	endpointMessages = 32
)

const endpointName = "envoy.config.endpoint.v3.LbEndpoint"

// Weight is the content of a message, counted on the wire.
type Weight struct {
	Bytes     int
	Elements  int // of its own lists
	Messages  int
	Endpoints int
}

// Weigh counts up to the limits. It ignores malformed bytes, which fail to decode
// anyway.
func Weigh(message protoreflect.MessageDescriptor, data []byte) Weight {
	w := Weight{Bytes: len(data)}
	fields.Walk(message, data, func(depth int, descriptor protoreflect.FieldDescriptor, f fields.Field) bool {
		if descriptor == nil {
			return true
		}
		if depth == 0 && descriptor.IsList() {
			w.Elements++
		}
		if m := descriptor.Message(); m != nil && f.Kind == protowire.BytesType {
			w.Messages++
			if m.FullName() == endpointName {
				w.Endpoints++
			}
		}
		return w.Elements <= MaxElements
	})
	return w
}

// Excess names the limit that the message exceeds; empty if none.
func (w *Weight) Excess() string {
	switch {
	case w.Elements > MaxElements:
		return fmt.Sprintf("it has more than %d elements, the limit for one response", MaxElements)
	case w.Endpoints > MaxEndpoints:
		return fmt.Sprintf("it has more than %d endpoints, and no more are taken: make several of it", MaxEndpoints)
	default:
		return w.Hollow()
	}
}

// Hollow reports that a message takes far more memory than it has bytes; empty if it does not.
func (w *Weight) Hollow() string {
	switch {
	case w.Endpoints > freeMessages+w.Bytes/leastEndpointBytes:
		return fmt.Sprintf("it has %d endpoints in %d bytes: nearly all of them must be empty", w.Endpoints, w.Bytes)
	case w.Messages > freeMessages+w.Bytes/leastMessageBytes:
		return fmt.Sprintf("it has %d messages in %d bytes: nearly all of them must be empty", w.Messages, w.Bytes)
	default:
		return ""
	}
}

// WeighResource is Weigh of an encoded resource.
func WeighResource(typeURL string, data []byte) Weight { return Weigh(resources[typeURL], data) }

// Excess names the limit that an encoded resource exceeds, so that it should not be decoded;
// empty if none.
func Excess(typeURL string, data []byte) string {
	w := WeighResource(typeURL, data)
	return w.ExcessOfOne()
}

// ExcessOfOne is Excess of a resource.
func (w *Weight) ExcessOfOne() string {
	if excess := w.Excess(); excess != "" {
		return excess
	}
	if limit := maxMessages + endpointMessages*w.Endpoints; w.Messages > limit {
		return fmt.Sprintf("it has %d messages with %d endpoints, and no more than %d are taken: make several of it", w.Messages, w.Endpoints, limit)
	}
	return ""
}

// resources are the messages of each type.
var resources = map[string]protoreflect.MessageDescriptor{
	Cluster:    (&clusterv3.Cluster{}).ProtoReflect().Descriptor(),
	Assignment: (&endpointv3.ClusterLoadAssignment{}).ProtoReflect().Descriptor(),
}
