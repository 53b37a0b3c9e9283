package specifier

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/test/envoy"
)

// samples are translated with what the checkers have.
func samples(t *testing.T) ([]envoy.Sample, Options) {
	t.Helper()
	at := func(host string) *endpointv3.Endpoint { return &endpointv3.Endpoint{Address: socketAt(host, 80)} }
	return envoy.Samples(t, envoy.Bench{Plain: at("10.0.0.1"), Secure: at("10.0.0.2"), File: "/ca.pem"}),
		Options{Files: map[string]bool{"/ca.pem": true}, SDSSecrets: map[string]bool{envoy.AuthoritySecret: true, envoy.PairSecret: true}}
}

// TestSamples: what is allowed is sent without its left-out fields, and what is outside is
// excluded with its reason.
func TestSamples(t *testing.T) {
	all, options := samples(t)
	for _, s := range all {
		c := Translate("web", s.Config, s.Assignment, []*corev3.HealthCheck{s.Check}, options)
		message := specifierOf(c).Message()
		if s.Outcome != envoy.Sent {
			if len(c.Endpoints) > 0 || len(c.Excluded) != 1 || !strings.Contains(c.Excluded[0].Reason, s.Reason) {
				t.Errorf("%s: excluded %+v", s.Text, c.Excluded)
			}
			continue
		}
		if len(c.Endpoints) != 1 || len(c.Excluded) > 0 {
			t.Errorf("%s: excluded %+v", s.Text, c.Excluded)
		}
		eachField(t, message.ProtoReflect(), func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) {
			if treatment, ok := treatments[fd.FullName()]; ok && treatment.action != keep && fd.FullName() != "envoy.config.core.v3.HealthCheck.name" {
				t.Errorf("%s: %s is sent", s.Text, fd.FullName())
			}
		})
	}
}

// Each field that is sent has a sample with it, and each that has a test one with a value outside
// of it, but for those of which every value outside is one that not every Envoy lives with.
func TestSamplesHaveEveryField(t *testing.T) {
	unsent := map[protoreflect.FullName]bool{
		"envoy.config.core.v3.HealthCheck.transport_socket_match_criteria":  true, // replaced
		"envoy.config.core.v3.SocketAddress.protocol":                       true, // of its values, only the default is sent
		"envoy.extensions.transport_sockets.tls.v3.TlsCertificate.password": true, // a rule refuses it
	}
	untested := map[protoreflect.FullName]bool{
		"envoy.config.core.v3.GrpcService.EnvoyGrpc.cluster_name":                                        true,
		"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.verify_certificate_hash": true,
		"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.verify_certificate_spki": true,
		"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.max_verify_depth":        true,
	}
	all, options := samples(t)
	for _, s := range all {
		for _, m := range []proto.Message{s.Config, s.Assignment, s.Check} {
			eachField(t, m.ProtoReflect(), func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
				if test := treatments[fd.FullName()].test; test != nil && test(v) != "" {
					untested[fd.FullName()] = true
				}
			})
		}
		c := Translate("web", s.Config, s.Assignment, []*corev3.HealthCheck{s.Check}, options)
		eachField(t, specifierOf(c).Message().ProtoReflect(), func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) { unsent[fd.FullName()] = true })
	}
	for _, name := range slices.Sorted(maps.Keys(treatments)) {
		treatment := treatments[name]
		if treatment.action == keep && !unsent[name] {
			t.Errorf("no sample sends %s", name)
		}
		if treatment.test != nil && !untested[name] {
			t.Errorf("no sample has a value of %s that its test finds wrong", name)
		}
	}
}

// eachField visits every set field of a message and of those in it, each element of a list alone.
func eachField(t *testing.T, m protoreflect.Message, visit func(protoreflect.FieldDescriptor, protoreflect.Value)) {
	t.Helper()
	if packed, ok := m.Interface().(*anypb.Any); ok {
		inner, err := packed.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		eachField(t, inner.ProtoReflect(), visit)
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		values := []protoreflect.Value{v}
		if fd.IsList() {
			values = values[:0]
			for i := range v.List().Len() {
				values = append(values, v.List().Get(i))
			}
		}
		for _, value := range values {
			visit(fd, value)
			if fd.Message() != nil && !fd.IsMap() {
				eachField(t, value.Message(), visit)
			}
		}
		return true
	})
}

// TestTreatments: what to do with a field does not depend on its value, unless it has a test.
func TestTreatments(t *testing.T) {
	for name, treatment := range treatments {
		if treatment.action == keep {
			continue
		}
		message, err := protoregistry.GlobalTypes.FindMessageByName(name.Parent())
		if err != nil {
			t.Fatal(err)
		}
		m, r := message.New(), &review{}
		r.field("x", m, m.Descriptor().Fields().ByName(name.Name()))
		switch treatment.action {
		case refuse:
			if want := "x: " + treatment.advice; treatment.advice == "" || r.reason() != want {
				t.Errorf("%s is refused by %q, want %q", name, r.reason(), want)
			}
		case leaveOut:
			if r.reason() != "" || !r.dirty {
				t.Errorf("%s is left out by %q, changed: %t", name, r.reason(), r.dirty)
			}
		}
	}
}
