package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What the checkers of samples have.
const (
	AuthoritySecret = "authority" // a secret: who signs the samples' certificate
	PairSecret      = "pair"      // a secret: a certificate with its key
)

// Outcome is what hdsd and Envoy make of a sample.
type Outcome string

// Sent is allowed. Rejected is excluded by hdsd, and by Envoy, in silence. Excluded is excluded
// by hdsd alone.
const (
	Sent     Outcome = "sent"
	Rejected Outcome = "rejected"
	Excluded Outcome = "excluded"
)

// Sample is a line of envoy/specifier/testdata/samples.txt: a cluster that is right but for, perhaps,
// one value.
type Sample struct {
	Text    string // the line
	Outcome Outcome
	Reason  string // of an exclusion, in part

	Config     *clusterv3.Cluster
	Assignment *endpointv3.ClusterLoadAssignment
	Check      *corev3.HealthCheck
}

// Bench is where the endpoints of samples are.
type Bench struct {
	Plain, Secure *endpointv3.Endpoint // an HTTP server, and one with TLS
	File          string               // holds a certificate
}

// Samples reads the table.
func Samples(t testing.TB, b Bench) []Sample {
	t.Helper()
	root, err := Repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "envoy", "specifier", "testdata", "samples.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Sample
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := b.sample(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}

func (b Bench) sample(line string) (Sample, error) {
	head, rest, _ := strings.Cut(line, ": ")
	value, reason, _ := strings.Cut(rest, " -- ")
	outcome, root, _ := strings.Cut(head, " ")
	s := Sample{
		Text: line, Outcome: Outcome(outcome), Reason: reason, Config: &clusterv3.Cluster{}, Check: SoundCheck(),
		Assignment: &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{Locality: &corev3.Locality{Region: "r", Zone: "a"}}}},
	}
	if known := s.Outcome == Sent || s.Outcome == Rejected || s.Outcome == Excluded; !known || (s.Outcome == Sent) != (reason == "") {
		return s, fmt.Errorf("is no sample")
	}
	locality, endpoint := s.Assignment.Endpoints[0], proto.CloneOf(b.Plain)
	var err error
	switch root {
	case "check":
		err = b.change(s.Check, value)
	case "endpoint":
		err = b.change(endpoint, value)
	case "locality":
		err = b.change(locality.Locality, value)
	case "context":
		context := soundContext()
		endpoint, err = b.Secure, b.change(context, value)
		s.Config.TransportSocket = tlsSocket(context)
	default:
		err = fmt.Errorf("%q is no part of a cluster", root)
	}
	locality.LbEndpoints = []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}}}
	return s, err
}

var (
	removal    = regexp.MustCompile(`^-(\w+) ?`)
	repetition = regexp.MustCompile(`<(\d+)\*(\w)>`)
)

// change sets and removes fields of a message as the text of a sample says.
func (b Bench) change(m proto.Message, text string) error {
	reflected := m.ProtoReflect()
	for found := removal.FindStringSubmatch(text); found != nil; found = removal.FindStringSubmatch(text) {
		reflected.Clear(reflected.Descriptor().Fields().ByName(protoreflect.Name(found[1])))
		text = strings.TrimPrefix(text, found[0])
	}
	text = repetition.ReplaceAllStringFunc(text, func(part string) string {
		found := repetition.FindStringSubmatch(part)
		n, _ := strconv.Atoi(found[1]) // digits
		return strings.Repeat(found[2], n)
	})
	quoted := func(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }
	text = strings.NewReplacer("$CERT", quoted(certificate), "$KEY", quoted(privateKey), "$CRL", quoted(revocations), "$FILE", b.File,
		"$SDS", prototext.MarshalOptions{}.Format(SecretsFrom("hdsd"))).Replace(text)
	change := reflected.New()
	if err := prototext.Unmarshal([]byte(text), change.Interface()); err != nil {
		return err
	}
	change.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		reflected.Set(fd, v)
		return true
	})
	return nil
}

// SoundCheck is an HTTP check that passes, with all that every check needs.
func SoundCheck() *corev3.HealthCheck {
	interval := durationpb.New(50 * time.Millisecond)
	return &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: interval, NoTrafficInterval: interval, NoTrafficHealthyInterval: interval,
		UnhealthyThreshold: wrapperspb.UInt32(1), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/"}},
	}
}

// soundContext trusts the server with TLS.
func soundContext() *tlsv3.UpstreamTlsContext {
	return &tlsv3.UpstreamTlsContext{Sni: "lab.test", CommonTlsContext: &tlsv3.CommonTlsContext{
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(certificate)}},
	}}
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

func tlsSocket(context *tlsv3.UpstreamTlsContext) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: anyOf(context)}}
}

func anyOf(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err) // a message of this package cannot be encoded
	}
	return packed
}

// SecretsFrom is SDS from a cluster of the checkers' bootstrap.
func SecretsFrom(cluster string) *corev3.ConfigSource {
	return &corev3.ConfigSource{ResourceApiVersion: corev3.ApiVersion_V3, ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
		ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster}}}},
	}}}
}
