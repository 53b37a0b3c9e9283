package redact

import (
	"strings"
	"sync"

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

	"hdsd/internal/dynamic"
)

// Hidden replaces sensitive text.
const Hidden = "[redacted]"

// maxNesting bounds the nesting of messages. Deeper ones are not shown.
const maxNesting = 100

// Any returns a configuration without sensitive parts: the same one if it has none, nil if it
// cannot be read.
func Any(a *anypb.Any) *anypb.Any {
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil
	}
	if !hiding.redact(m.ProtoReflect(), 0) {
		return a
	}
	redacted := &anypb.Any{TypeUrl: a.GetTypeUrl()}
	if redacted.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
		return nil
	}
	return redacted
}

// Message hides the sensitive parts of a message.
func Message(m proto.Message) { hiding.redact(m.ProtoReflect(), 0) }

// Replacement says what takes the place of secrets.
type Replacement struct {
	// Text returns what takes the place of a text. Digits says that it is hexadecimal, and has to
	// stay so.
	Text func(secret string, digits bool) string

	// Value returns what takes the place of the value of an Any that nobody can look into.
	Value func(secret []byte) []byte

	// Message replaces a message as a whole. It returns false to have the message looked into.
	Message func(m protoreflect.Message) bool
}

// hiding shows where a secret is, and in which way it is given.
var hiding = &Replacement{
	Text:    func(string, bool) string { return Hidden },
	Value:   func([]byte) []byte { return nil },
	Message: func(protoreflect.Message) bool { return false },
}

// Replace replaces the sensitive parts of a message, and reports whether it has any. What it cannot look
// into, it replaces too.
func Replace(m proto.Message, by *Replacement) bool { return by.redact(m.ProtoReflect(), 0) }

// redact replaces the sensitive parts of a message, and reports whether it has any.
func (by *Replacement) redact(m protoreflect.Message, depth int) (changed bool) {
	if depth > maxNesting {
		proto.Reset(m.Interface())
		return true
	}
	if a, ok := dynamic.Any(m); ok {
		if changed = by.redactAny(a, depth); changed {
			dynamic.Store(m, a)
		}
		return changed
	}
	if by.Message(m) {
		return true
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case sensitive(f):
			by.hide(m, f)
			changed = true
			return true
		case requests[f.FullName()]:
			if path, query, _ := strings.Cut(v.String(), "?"); query != "" {
				m.Set(f, protoreflect.ValueOfString(path+"?"+by.Text(query, false)))
				changed = true
			}
			return true
		}
		if mayHold(f) {
			forEach(f, v, func(inner protoreflect.Message) { changed = by.redact(inner, depth+1) || changed })
		}
		return true
	})
	return changed
}

// holding says of types whether a message of them may have a sensitive part, by their names.
var holding sync.Map

// mayHold reports whether the messages in a field may have sensitive parts. Most endpoints are of types
// that have none.
func mayHold(f protoreflect.FieldDescriptor) bool {
	d := f.Message()
	if d == nil {
		return false
	}
	known, ok := holding.Load(d.FullName())
	if !ok {
		known = reaches(d, map[protoreflect.FullName]bool{})
		holding.Store(d.FullName(), known)
	}
	return known.(bool) // nothing else is stored
}

// reaches reports whether a type, or one in its fields, is an Any or has a sensitive field.
func reaches(d protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if seen[d.FullName()] {
		return false
	}
	seen[d.FullName()] = true
	if d.FullName() == "google.protobuf.Any" {
		return true
	}
	fields := d.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if sensitive(f) || requests[f.FullName()] || f.Message() != nil && reaches(f.Message(), seen) {
			return true
		}
	}
	return false
}

// redactAny redacts the message inside. It leaves only the type where that is unknown or
// is one that hides the type of another message, beside what Value returns.
func (by *Replacement) redactAny(a *anypb.Any, depth int) bool {
	if len(a.GetValue()) == 0 {
		return false
	}
	inner, err := a.UnmarshalNew()
	if err == nil {
		switch inner.ProtoReflect().Descriptor().FullName() {
		case "udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct":
		default:
			if !by.redact(inner.ProtoReflect(), depth+1) {
				return false
			}
			if a.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(inner); err == nil {
				return true
			}
		}
	}
	a.Value = by.Value(a.GetValue())
	return true
}

// secrets are fields that Envoy's protos do not mark as sensitive, and in which people write tokens
// and passwords.
var secrets = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.HeaderValue.value":          true,
	"envoy.config.core.v3.HeaderValue.raw_value":      true,
	"envoy.config.core.v3.HealthCheck.Payload.text":   true,
	"envoy.config.core.v3.HealthCheck.Payload.binary": true,

	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.access_token":                                true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.google_refresh_token":                        true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.ServiceAccountJWTAccessCredentials.json_key": true,
	"envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.GoogleIAMCredentials.authorization_token":    true,
}

// hexadecimal is the field of secrets that holds hexadecimal digits.
const hexadecimal protoreflect.FullName = "envoy.config.core.v3.HealthCheck.Payload.text"

// requests are fields whose query string may be a secret.
var requests = map[protoreflect.FullName]bool{"envoy.config.core.v3.HealthCheck.HttpHealthCheck.path": true}

func sensitive(f protoreflect.FieldDescriptor) bool {
	if secrets[f.FullName()] {
		return true
	}
	options, ok := f.Options().(*descriptorpb.FieldOptions)
	if !ok || options == nil {
		return false
	}
	marked, _ := proto.GetExtension(options, annotations.E_Sensitive).(bool)
	return marked
}

// forEach visits each message in a field.
func forEach(f protoreflect.FieldDescriptor, v protoreflect.Value, visit func(protoreflect.Message)) {
	switch {
	case f.IsMap():
		if f.MapValue().Message() != nil {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { visit(v.Message()); return true })
		}
	case f.Message() == nil:
	case f.IsList():
		for i := range v.List().Len() {
			visit(v.List().Get(i).Message())
		}
	default:
		visit(v.Message())
	}
}

// hide replaces a field's texts, also in nested messages, and clears everything else. So
// it still shows in which way a secret was given.
func (by *Replacement) hide(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap() || f.IsList() && f.Message() == nil:
		m.Clear(f)
	case f.Message() != nil:
		forEach(f, m.Get(f), by.hideAll)
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString(by.Text(m.Get(f).String(), f.FullName() == hexadecimal)))
	case f.Kind() == protoreflect.BytesKind:
		m.Set(f, protoreflect.ValueOfBytes([]byte(by.Text(string(m.Get(f).Bytes()), false))))
	default:
		m.Clear(f)
	}
}

func (by *Replacement) hideAll(m protoreflect.Message) {
	m.SetUnknown(nil)
	if a, ok := dynamic.Any(m); ok {
		a.Value = nil
		dynamic.Store(m, a)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		by.hide(m, f)
		return true
	})
}
