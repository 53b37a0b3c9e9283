package envoy

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// mutant is a message with one hostile value in it.
type mutant struct {
	field, value string
	message      proto.Message
}

// mutants enumerates base with every field of it, and of the messages in it,
// set in turn to each value that might hurt.
func mutants(base protoreflect.Message) iter.Seq[mutant] {
	return func(yield func(mutant) bool) {
		enumerate(base, nil, func(field, value string, m protoreflect.Message) bool {
			return yield(mutant{field: field, value: value, message: m.Interface()})
		})
		unknown := proto.Clone(base.Interface())
		unknown.ProtoReflect().SetUnknown([]byte{0xf8, 0xff, 0x03, 0x01}) // field 8191
		yield(mutant{field: "(field unknown to this release)", value: "1", message: unknown})
	}
}

type visit func(field, value string, m protoreflect.Message) bool

func enumerate(base protoreflect.Message, above []protoreflect.FullName, yield visit) bool {
	name := base.Descriptor().FullName()
	if slices.Contains(above, name) {
		return true
	}
	above = append(slices.Clip(above), name)
	fields := base.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		with := func(set func(m protoreflect.Message)) protoreflect.Message {
			m := proto.Clone(base.Interface()).ProtoReflect()
			set(m)
			return m
		}
		if !values(fd, func(label string, set func(m protoreflect.Message)) bool {
			return yield(string(fd.Name()), label, with(set))
		}) {
			return false
		}
		if fd.Message() == nil || fd.IsMap() || opaque[fd.Message().FullName()] || opaqueFields[fd.FullName()] {
			continue
		}
		descend := func(field, value string, child protoreflect.Message) bool {
			return yield(string(fd.Name())+"."+field, value, with(func(m protoreflect.Message) { put(m, fd, child) }))
		}
		child := saneMessage(fd.Message())
		if base.Has(fd) && !fd.IsList() {
			child = base.Get(fd).Message()
		}
		if !enumerate(child, above, descend) {
			return false
		}
	}
	return true
}

// opaque messages are tried whole only.
var opaque = map[protoreflect.FullName]bool{
	"google.protobuf.Any": true, "google.protobuf.Duration": true, "google.protobuf.Struct": true, "google.protobuf.Value": true,
	"google.protobuf.UInt32Value": true, "google.protobuf.UInt64Value": true, "google.protobuf.BoolValue": true,
	"google.protobuf.Timestamp": true, "envoy.config.core.v3.GrpcService": true, "envoy.config.core.v3.ConfigSource": true,
	"envoy.config.core.v3.Metadata": true, "envoy.extensions.filters.network.redis_proxy.v3.AwsIam": true,
	"envoy.config.core.v3.TypedExtensionConfig": true, "envoy.config.core.v3.EnvoyInternalAddress": true, "envoy.config.core.v3.WatchedDirectory": true,
	"envoy.config.core.v3.SubstitutionFormatString":                                          true,
	"envoy.extensions.transport_sockets.tls.v3.CertificateProviderPluginInstance":            true,
	"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CertificateProvider":         true,
	"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CertificateProviderInstance": true,
	"envoy.extensions.transport_sockets.tls.v3.TlsKeyLog":                                    true,
	"envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider":                           true,
}

// opaqueFields are tried whole too: they hold what is tried elsewhere.
var opaqueFields = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.BindConfig.additional_source_addresses":                                                                true,
	"envoy.config.core.v3.BindConfig.extra_source_addresses":                                                                     true,
	"envoy.config.endpoint.v3.Endpoint.additional_addresses":                                                                     true,
	"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CombinedCertificateValidationContext.default_validation_context": true,
	"envoy.extensions.transport_sockets.tls.v3.TlsCertificate.tls_params":                                                        true,
}

func put(m protoreflect.Message, fd protoreflect.FieldDescriptor, children ...protoreflect.Message) {
	if !fd.IsList() {
		m.Set(fd, protoreflect.ValueOfMessage(children[0]))
		return
	}
	list := m.NewField(fd).List()
	for _, child := range children {
		list.Append(protoreflect.ValueOfMessage(child))
	}
	m.Set(fd, protoreflect.ValueOfList(list))
}

// values enumerates the hostile values of one field.
func values(fd protoreflect.FieldDescriptor, yield func(label string, set func(protoreflect.Message)) bool) bool {
	if !yield("absent", func(m protoreflect.Message) { m.Clear(fd) }) {
		return false
	}
	switch {
	case fd.IsMap():
		return true
	case fd.Message() != nil:
		for label, message := range messages(fd) {
			if !yield(label, func(m protoreflect.Message) { put(m, fd, message) }) {
				return false
			}
		}
		if !fd.IsList() {
			return true
		}
		one := saneMessage(fd.Message())
		return yield("twice the same", func(m protoreflect.Message) { put(m, fd, one, one) }) &&
			yield("40 times the same", func(m protoreflect.Message) { put(m, fd, repeat(one, 40)...) })
	}
	n := 0
	for label, value := range scalars(fd) {
		if !yield(label, func(m protoreflect.Message) { setScalar(m, fd, value) }) {
			return false
		}
		if n++; fd.IsList() && n <= 2 && !yield(label+" twice", func(m protoreflect.Message) { setScalar(m, fd, value, value) }) {
			return false
		}
	}
	return true
}

func repeat(m protoreflect.Message, n int) []protoreflect.Message {
	all := make([]protoreflect.Message, n)
	for i := range all {
		all[i] = m
	}
	return all
}

func setScalar(m protoreflect.Message, fd protoreflect.FieldDescriptor, all ...protoreflect.Value) {
	if !fd.IsList() {
		m.Set(fd, all[0])
		return
	}
	list := m.NewField(fd).List()
	for _, value := range all {
		list.Append(value)
	}
	m.Set(fd, protoreflect.ValueOfList(list))
}

// messages enumerates values of a message's type that are of interest as a
// whole.
func messages(fd protoreflect.FieldDescriptor) iter.Seq2[string, protoreflect.Message] {
	return func(yield func(string, protoreflect.Message) bool) {
		empty := newMessage(fd.Message())
		if !yield("empty", empty) {
			return
		}
		switch fd.Message().FullName() {
		case "google.protobuf.Duration":
			for _, d := range durations {
				if !yield(d.label, d.message.ProtoReflect()) {
					return
				}
			}
		case "google.protobuf.Any":
			for _, a := range anys {
				if !yield(a.label, a.message.ProtoReflect()) {
					return
				}
			}
		case "envoy.config.core.v3.TypedExtensionConfig":
			for _, a := range anys {
				if !yield(a.label, (&corev3.TypedExtensionConfig{Name: "x", TypedConfig: a.message}).ProtoReflect()) {
					return
				}
			}
		case "google.protobuf.UInt32Value", "google.protobuf.UInt64Value", "google.protobuf.BoolValue":
			inner := fd.Message().Fields().ByName("value")
			for label, value := range scalars(inner) {
				m := newMessage(fd.Message())
				m.Set(inner, value)
				if !yield(label, m) {
					return
				}
			}
		default:
			if whole := saneMessage(fd.Message()); !proto.Equal(whole.Interface(), empty.Interface()) {
				yield("sane", whole)
			}
		}
	}
}

func newMessage(md protoreflect.MessageDescriptor) protoreflect.Message {
	if mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName()); err == nil {
		return mt.New()
	}
	return dynamicpb.NewMessage(md)
}

var durations = []struct {
	label   string
	message *durationpb.Duration
}{
	{"-1s", &durationpb.Duration{Seconds: -1}}, {"1ns", &durationpb.Duration{Nanos: 1}}, {"-1ns", &durationpb.Duration{Nanos: -1}},
	{"999.999µs", &durationpb.Duration{Nanos: 999_999}}, {"1ms", &durationpb.Duration{Nanos: 1_000_000}}, {"1s", &durationpb.Duration{Seconds: 1}},
	{"1 day", &durationpb.Duration{Seconds: 86400}}, {"100 days", &durationpb.Duration{Seconds: 8_640_000}},
	{"2^31 ms", &durationpb.Duration{Seconds: 2_147_484}}, {"2^32 ms", &durationpb.Duration{Seconds: 4_294_968}},
	{"300 years", &durationpb.Duration{Seconds: 300 * 365 * 86400}}, {"10000 years", &durationpb.Duration{Seconds: 315_576_000_000}},
	{"past the greatest", &durationpb.Duration{Seconds: 315_576_000_001}}, {"max int64 s", &durationpb.Duration{Seconds: math.MaxInt64}},
	{"min int64 s", &durationpb.Duration{Seconds: math.MinInt64}}, {"signs differ", &durationpb.Duration{Seconds: 1, Nanos: -1}},
	{"10^9 ns", &durationpb.Duration{Nanos: 1_000_000_000}},
}

var anys = []struct {
	label   string
	message *anypb.Any
}{
	{"unknown type", &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte{8, 1}}},
	{"no such URL", &anypb.Any{TypeUrl: "rubbish"}},
	{"another type", anyOf(durationpb.New(1))},
	{"no bytes of TLS", &anypb.Any{TypeUrl: tlsType, Value: []byte{0xff, 0xff}}},
	{"no bytes of Redis", &anypb.Any{TypeUrl: redisType, Value: []byte{0xff, 0xff}}},
}

const (
	tlsType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	redisType = "type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis"
)

func anyOf(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // of the test's own messages
	}
	return a
}

// scalars enumerates hostile values of one element of a field.
func scalars(fd protoreflect.FieldDescriptor) iter.Seq2[string, protoreflect.Value] {
	return func(yield func(string, protoreflect.Value) bool) {
		for _, value := range scalarValues(fd) {
			label := value.String()
			switch fd.Kind() {
			case protoreflect.StringKind:
				label = quote(value.String())
			case protoreflect.BytesKind:
				label = quote(string(value.Bytes()))
			case protoreflect.EnumKind:
				label = fmt.Sprint(value.Enum())
				if named := fd.Enum().Values().ByNumber(value.Enum()); named != nil {
					label = string(named.Name())
				}
			}
			if !yield(label, value) {
				return
			}
		}
	}
}

func quote(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%.10q… (%d bytes)", s, len(s))
	}
	return fmt.Sprintf("%q", s)
}

func scalarValues(fd protoreflect.FieldDescriptor) []protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return each(protoreflect.ValueOfBool, true, false)
	case protoreflect.EnumKind:
		numbers := []protoreflect.EnumNumber{99, -1}
		for i := range fd.Enum().Values().Len() {
			numbers = append(numbers, fd.Enum().Values().Get(i).Number())
		}
		return each(protoreflect.ValueOfEnum, numbers...)
	case protoreflect.Uint32Kind:
		return each(protoreflect.ValueOfUint32, 0, 1, 100, 101, 65535, 65536, math.MaxUint32)
	case protoreflect.Uint64Kind:
		return each(protoreflect.ValueOfUint64, 0, 1, 65536, math.MaxUint32, math.MaxUint64)
	case protoreflect.Int64Kind:
		return each(protoreflect.ValueOfInt64, -1, 0, 99, 100, 300, 599, 600, 601, math.MaxInt64, math.MinInt64)
	case protoreflect.Int32Kind:
		return each(protoreflect.ValueOfInt32, -1, 0, 1, math.MaxInt32, math.MinInt32)
	case protoreflect.BytesKind:
		return each(protoreflect.ValueOfBytes, nil, []byte("x"), []byte{0, 0xff}, []byte(strings.Repeat("b", 5000)))
	case protoreflect.StringKind:
		return each(protoreflect.ValueOfString, stringValues(fd)...)
	}
	panic("no hostile values for " + fd.FullName()) // a new kind wants thought
}

func each[T any](wrap func(T) protoreflect.Value, all ...T) []protoreflect.Value {
	var out []protoreflect.Value
	for _, value := range all {
		out = append(out, wrap(value))
	}
	return out
}

// missing is a folder that is on no machine, so that nothing is written there.
const missing = "/nonexistent/"

func stringValues(fd protoreflect.FieldDescriptor) []string {
	all := []string{"", "x", strings.Repeat("a", 5000), "a\x00b", "bad host\r\nx: y", "ü", ":"}
	name := string(fd.Name())
	switch {
	case strings.Contains(name, "address"):
		all = append(all, "localhost", "256.0.0.1", "1.2.3", "010.0.0.1", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "fe80::1%lo", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "127.0.0.1 ")
	case strings.Contains(name, "path") || strings.Contains(name, "file"):
		all = append(all, "/nonexistent/file", "/", "/dev/null", "@abstract", missing+strings.Repeat("p", 107-len(missing)), missing+strings.Repeat("p", 108-len(missing)), "no/slash")
	case name == "key" || strings.Contains(name, "headers"):
		all = append(all, ":path", ":authority", "host", "content-length", "transfer-encoding", "connection", "x-ok", "bad header")
	case name == "regex":
		all = append(all, "(", "(a*)*b", "a{1000}", strings.Repeat("(a?){1000}", 10))
	case name == "value":
		all = append(all, "%START_TIME%", "%REQ(", "%", "%%", "%DOWNSTREAM_REMOTE_ADDRESS%", "%UPSTREAM_METADATA([\"a\", \"b\"])%", "%DYNAMIC_METADATA(a:b)%", "%NO_SUCH%")
	case name == "text":
		all = append(all, "0", "00", "000", "0x00", "AbCd", "00 00")
	}
	return all
}
