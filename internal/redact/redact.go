package redact

import (
	"strings"

	"github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"

	// The types in configurations. A message whose type is not linked can neither be
	// redacted nor written as JSON.
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/http_11_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/starttls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
)

// Hidden replaces sensitive text.
const Hidden = "[redacted]"

// maxNesting bounds the nesting of messages. What is deeper is not shown.
const maxNesting = 100

// Any returns a configuration without sensitive parts: the same one where it has none, nil where it
// cannot be read.
func Any(a *anypb.Any) *anypb.Any {
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil
	}
	if !redact(m.ProtoReflect(), 0) {
		return a
	}
	out := &anypb.Any{TypeUrl: a.GetTypeUrl()}
	if out.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
		return nil
	}
	return out
}

// Message hides the sensitive parts of a message.
func Message(m proto.Message) { redact(m.ProtoReflect(), 0) }

// redact hides the sensitive parts of a message, and tells whether it has any.
func redact(m protoreflect.Message, depth int) (changed bool) {
	if depth > maxNesting {
		proto.Reset(m.Interface())
		return true
	}
	if a, ok := m.Interface().(*anypb.Any); ok {
		return redactAny(a, depth)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case sensitive(f):
			hide(m, f)
			changed = true
			return true
		case requests[f.FullName()]:
			if path, query, _ := strings.Cut(v.String(), "?"); query != "" {
				m.Set(f, protoreflect.ValueOfString(path+"?"+Hidden))
				changed = true
			}
			return true
		}
		each(f, v, func(inner protoreflect.Message) { changed = redact(inner, depth+1) || changed })
		return true
	})
	return changed
}

// redactAny redacts the message inside. It leaves only the type where that is unknown or
// is one that hides the type of another message.
func redactAny(a *anypb.Any, depth int) bool {
	if len(a.GetValue()) == 0 {
		return false
	}
	inner, err := a.UnmarshalNew()
	if err == nil {
		switch inner.ProtoReflect().Descriptor().FullName() {
		case "udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct":
		default:
			if !redact(inner.ProtoReflect(), depth+1) {
				return false
			}
			if a.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(inner); err == nil {
				return true
			}
		}
	}
	a.Value = nil
	return true
}

// secrets are fields that Envoy's protos do not mark as sensitive, and in which people write tokens
// and passwords.
var secrets = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.HeaderValue.value":          true,
	"envoy.config.core.v3.HeaderValue.raw_value":      true,
	"envoy.config.core.v3.HealthCheck.Payload.text":   true,
	"envoy.config.core.v3.HealthCheck.Payload.binary": true,
}

// requests are fields of which the part behind a question mark may be a secret.
var requests = map[protoreflect.FullName]bool{"envoy.config.core.v3.HealthCheck.HttpHealthCheck.path": true}

func sensitive(f protoreflect.FieldDescriptor) bool {
	if secrets[f.FullName()] {
		return true
	}
	options, ok := f.Options().(*descriptorpb.FieldOptions)
	if !ok || options == nil {
		return false
	}
	is, _ := proto.GetExtension(options, annotations.E_Sensitive).(bool)
	return is
}

// each calls do for each message in a field.
func each(f protoreflect.FieldDescriptor, v protoreflect.Value, do func(protoreflect.Message)) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() != nil {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { do(v.Message()); return true })
		}
	case f.Message() == nil:
	case f.IsList():
		for i := range v.List().Len() {
			do(v.List().Get(i).Message())
		}
	default:
		do(v.Message())
	}
}

// hide replaces a field's texts, also in nested messages, and clears everything else. So
// it still shows in which way a secret was given.
func hide(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap() || f.IsList() && f.Message() == nil:
		m.Clear(f)
	case f.Message() != nil:
		each(f, m.Get(f), hideAll)
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString(Hidden))
	case f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes([]byte(Hidden)))
	default:
		m.Clear(f)
	}
}

func hideAll(m protoreflect.Message) {
	m.SetUnknown(nil)
	if a, ok := m.Interface().(*anypb.Any); ok {
		a.Value = nil
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		hide(m, f)
		return true
	})
}
