package specifier

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestEveryFieldIsReviewed fails when a new release of Envoy's API brings a field that
// nobody has reviewed: it is refused until it has a treatment.
func TestEveryFieldIsReviewed(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	for _, root := range []proto.Message{
		&corev3.HealthCheck{}, &endpointv3.Endpoint{}, &corev3.Locality{}, &tlsv3.UpstreamTlsContext{}, &redisv3.Redis{},
	} {
		reviewed(t, root.ProtoReflect().Descriptor(), seen)
	}
	for name := range treatments {
		if !seen[name.Parent()] {
			t.Errorf("%s has a treatment, and is in no message that is reviewed", name)
		}
	}
	for name := range messages {
		if !seen[name] {
			t.Errorf("%s has a test, and is no message that is reviewed", name)
		}
	}
}

// reviewed looks at the fields of a message and of those that are sent in it.
func reviewed(t *testing.T, md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) {
	if seen[md.FullName()] || leaves[md.FullName()] {
		return
	}
	seen[md.FullName()] = true
	known := map[protoreflect.FullName]bool{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		known[fd.FullName()] = true
		treatment, ok := treatments[fd.FullName()]
		if !ok {
			t.Errorf("%s has no treatment: decide whether checkers are sent it, then add it to the tables, to testdata/samples.txt and to docs/internals/envoy-hds.md", fd.FullName())
			continue
		}
		if treatment.action == refuse && treatment.advice == "" {
			t.Errorf("%s is refused without a reason", fd.FullName())
		}
		if treatment.action == keep && fd.Message() != nil {
			reviewed(t, fd.Message(), seen)
		}
	}
	for name := range treatments {
		if name.Parent() == md.FullName() && !known[name] {
			t.Errorf("%s has a treatment, and is no field", name)
		}
	}
}

// TestThePageNamesEveryField: who reads what is allowed finds each field, but for the insides of
// what is refused or left out as a whole.
func TestThePageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/envoy-hds.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range treatments {
		if field := string(name.Name()); !strings.Contains(string(page), "`"+field+"`") && !strings.HasPrefix(field, "always_log_") {
			t.Errorf("docs/internals/envoy-hds.md says nothing of %s", name)
		}
	}
}

// TestWhatIsBuiltIsReviewed holds the fields of the messages that are put
// together by hand.
func TestWhatIsBuiltIsReviewed(t *testing.T) {
	for _, want := range []struct {
		message proto.Message
		fields  []string
	}{
		{&healthv3.HealthCheckSpecifier{}, []string{"cluster_health_checks", "interval"}},
		{&healthv3.ClusterHealthCheck{}, []string{"cluster_name", "health_checks", "locality_endpoints", "transport_socket_matches", "upstream_bind_config"}}, // the last one is never set
		{&healthv3.LocalityEndpoints{}, []string{"locality", "endpoints"}},
	} {
		md := want.message.ProtoReflect().Descriptor()
		for i := range md.Fields().Len() {
			if name := string(md.Fields().Get(i).Name()); !slices.Contains(want.fields, name) {
				t.Errorf("%s has a new field %s: decide whether a specifier should set it", md.FullName(), name)
			}
		}
	}
}
