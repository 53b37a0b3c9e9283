package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
)

// raw is a message as bytes.
type raw []byte

// rawCodec sends bytes as they are, valid or not.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	if m, ok := v.(raw); ok {
		return m, nil
	}
	return nil, errors.New("what is sent rawly is raw")
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	if m, ok := v.(*raw); ok {
		*m = data
	}
	return nil
}

func (rawCodec) Name() string { return "proto" }

// rawly dials for messages of any bytes.
func (s *site) rawly(t *testing.T) *grpc.ClientConn {
	return s.dial(t, grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
}

const large = 100 << 20

func (s *site) largeMessages(t *testing.T) {
	huge := raw(field(1, make([]byte, large)))
	// On a busy machine this side may be too slow to answer hdsd's pings. It then
	// counts as dead, so retry on another connection.
	envoy.Eventually(t, fleet.Patience, "large messages to be refused, and another stream of their connection to go on", func() bool {
		err := s.tellHuge(t, huge)
		lost := status.Code(err) == codes.Unavailable
		if err != nil && !lost {
			t.Error(err)
		}
		return !lost
	})
	for path, want := range map[string]int{"/v3/discovery:health_check": 413, "/v2/discovery:health_check": 413, "/v3/discovery:client_status": 413, "/v1/endpoints": 405} {
		if code := s.post(t, path, io.LimitReader(zeros{}, large), ""); code != want && code != 0 { // 0: cut off while it sent
			t.Errorf("100 MB for %s: %d, want %d", path, code, want)
		}
	}
}

// tellHuge sends a message that is far too large over one connection, and returns what
// is wrong with the end.
func (s *site) tellHuge(t *testing.T, huge raw) error {
	on := s.rawly(t)
	defer on.Close()
	calm := stream(t, on, adsMethod) // on the same connection; must stay unharmed
	if err := calm.SendMsg(raw(field(4, []byte("type.googleapis.com/a.type.not.served")))); err != nil {
		return err
	}
	for _, method := range []string{hdsMethod, adsMethod, deltaMethod, statusMethod} {
		if err := tell(t, on, method, huge); status.Code(err) != codes.ResourceExhausted {
			return fmt.Errorf("100 MB over %s: %w", method, err)
		}
	}
	node := raw(field(1, field(1, field(1, []byte("large")))))
	if err := tell(t, on, hdsMethod, node, huge); status.Code(err) != codes.ResourceExhausted {
		return fmt.Errorf("100 MB after a node: %w", err)
	}
	if err := on.Invoke(t.Context(), "/hdsd.v1.Query/ListEndpoints", huge, &raw{}); status.Code(err) != codes.ResourceExhausted {
		return fmt.Errorf("a query of 100 MB: %w", err)
	}
	if err := calm.SendMsg(raw(append(field(3, []byte("web")), field(4, []byte(assignments))...))); err != nil {
		return fmt.Errorf("another stream of the connection: %w", end(calm))
	}
	return calm.RecvMsg(&raw{})
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// post returns the status of a response, 0 if there is none.
func (s *site) post(t *testing.T, path string, body io.Reader, node string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTP+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if node != "" {
		request.Header.Set("x-hdsd-node-id", node)
	}
	answer, err := asking.Do(request)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// field encodes a field of bytes.
func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

const broken = "\xff\xfe\xc3\x28"

func (s *site) invalidText(t *testing.T) {
	on := s.rawly(t)
	node := func(parts ...[]byte) raw {
		var all []byte
		for _, p := range parts {
			all = append(all, p...)
		}
		return raw(field(1, field(1, all)))
	}
	id := field(1, []byte("broken"))
	for _, m := range []raw{
		node(field(1, []byte(broken))), node(id, field(2, []byte(broken))),
		node(id, field(3, field(1, append(field(1, []byte(broken)), field(2, field(3, []byte(broken)))...)))), // metadata
		node(id, field(4, field(2, []byte(broken)))),                                                          // zone
	} {
		s.conversation(t, on, hdsMethod, codes.InvalidArgument, m)
	}
	report := raw(field(2, field(2, field(1, []byte(broken)))))
	s.conversation(t, on, hdsMethod, codes.InvalidArgument, node(id), report)
	for _, m := range []raw{field(3, []byte(broken)), field(2, field(1, []byte(broken))), field(4, []byte(broken))} {
		s.conversation(t, on, adsMethod, codes.Internal, m)
		s.conversation(t, on, deltaMethod, codes.Internal, m)
	}
	for _, m := range []string{hdsMethod, adsMethod, deltaMethod, statusMethod} {
		want := codes.Internal
		if m == hdsMethod {
			want = codes.InvalidArgument
		}
		s.conversation(t, on, m, want, raw(garbage(7, 10_000)))
	}
}

// tooManyNames subscribes to several times the allowed number of names.
func (s *site) tooManyNames(t *testing.T) {
	names := make([]string, 500_000)
	for i := range names {
		names[i] = fmt.Sprint("cluster-", i)
	}
	on := s.dial(t)
	s.conversation(t, on, adsMethod, codes.ResourceExhausted, &discoveryv3.DiscoveryRequest{TypeUrl: assignments, ResourceNames: names})
	s.conversation(t, on, deltaMethod, codes.ResourceExhausted, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments, ResourceNamesSubscribe: names})
	versions := make(map[string]string)
	for _, name := range names[:300_000] {
		versions[name] = "1"
	}
	s.conversation(t, on, deltaMethod, codes.ResourceExhausted, &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: assignments, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: versions,
	})
}

func (s *site) enormousMetadata(t *testing.T) {
	on := s.dial(t)
	text := structpb.NewStringValue(strings.Repeat("x", 30<<20))
	node := &corev3.Node{Id: "enormous", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"x": text}}}
	s.conversation(t, on, hdsMethod, codes.InvalidArgument, first(node))
	subscriber := stream(t, on, adsMethod)
	if err := subscriber.SendMsg(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: assignments, ResourceNames: []string{"web"}}); err != nil {
		t.Fatal(err)
	}
	if err := subscriber.RecvMsg(&discoveryv3.DiscoveryResponse{}); err != nil {
		t.Errorf("a subscriber with 30 MB of metadata: %v", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-large", strings.Repeat("x", 1<<20))
	if _, err := hdsdv1.NewQueryClient(on).ListClusters(ctx, &hdsdv1.ListClustersRequest{}); err == nil {
		t.Error("a header of 1 MB is taken")
	}
}

// hold opens a connection, writes, and does nothing until release.
func (s *site) hold(t *testing.T, address, text string) (release func()) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { c.Close() })
}

// alive checks that a new client gets a response on both addresses.
func (s *site) alive(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	if _, err := hdsdv1.NewQueryClient(s.dial(t)).ListClusters(ctx, &hdsdv1.ListClustersRequest{}); err != nil {
		t.Errorf("a query meanwhile: %v", err)
	}
	if _, err := s.ask(); err != nil {
		t.Errorf("metrics meanwhile: %v", err)
	}
}
