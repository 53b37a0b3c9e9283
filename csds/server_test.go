package csds

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/anypb"
)

// inBubble runs a test with a server and a client of it.
func inBubble(t *testing.T, o Options, source Source, test func(t *testing.T, s *Server, c statusv3.ClientStatusDiscoveryServiceClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 10)
		transport, server := grpc.NewServer(), NewServer(o, source)
		server.Register(transport)
		go func() { _ = transport.Serve(listener) }()
		conn, err := grpc.NewClient("passthrough:test",
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithStaticStreamWindowSize(1<<16), grpc.WithStaticConnWindowSize(1<<16))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			server.Close()
			conn.Close()
			transport.Stop()
		}()
		test(t, server, statusv3.NewClientStatusDiscoveryServiceClient(conn))
	})
}

func scopes(r *statusv3.ClientStatusResponse) string {
	var all []string
	for _, c := range r.GetConfig() {
		all = append(all, c.GetClientScope())
	}
	return strings.Join(all, " ")
}

func TestAStreamAnswersEachRequest(t *testing.T) {
	inBubble(t, Options{}, fleet(t), func(t *testing.T, _ *Server, c statusv3.ClientStatusDiscoveryServiceClient) {
		stream, err := c.StreamClientStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for matchers, want := range map[string]string{
			``:                                  "sidecar/ADS quiet/EDS checker-1/HDS /ADS",
			`{"node_id":{"exact":"quiet"}}`:     "quiet/EDS",
			`{"node_id":{"exact":"nobody"}}`:    "",
			in("vpc", `{"present_match":true}`): "sidecar/ADS",
		} {
			if err := stream.Send(request(t, matchers)); err != nil {
				t.Fatal(err)
			}
			got, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if scopes(got) != want {
				t.Errorf("%s: got %q, want %q", matchers, scopes(got), want)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err == nil || status.Code(err) != codes.Unknown { // io.EOF
			t.Errorf("after the last request: %v", err)
		}
	})
}

func TestABadMatcherIsInvalidArgument(t *testing.T) {
	bad := `{"node_id":{"safe_regex":{"regex":"["}}}`
	inBubble(t, Options{}, fleet(t), func(t *testing.T, _ *Server, c statusv3.ClientStatusDiscoveryServiceClient) {
		_, err := c.FetchClientStatus(t.Context(), request(t, bad))
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("fetch: %v", err)
		}
		stream, err := c.StreamClientStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(request(t, bad)); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("stream: %v", err)
		}
	})
}

func TestExcludedContentsAreNotMade(t *testing.T) {
	made := 0
	source := fixed{{Node: &corev3.Node{Id: "a"}, Resources: resources(Resource{
		TypeURL: resourcev3.ClusterType, Name: "a", Version: "1", Config: statusv3.ConfigStatus_ERROR,
		Body:  func() *anypb.Any { made++; return &anypb.Any{TypeUrl: resourcev3.ClusterType} },
		Error: &Error{Details: "no", Version: "0", Body: func() *anypb.Any { made++; return &anypb.Any{TypeUrl: resourcev3.ClusterType} }},
	})}}
	inBubble(t, Options{}, source, func(t *testing.T, _ *Server, c statusv3.ClientStatusDiscoveryServiceClient) {
		got, err := c.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{ExcludeResourceContents: true})
		if err != nil {
			t.Fatal(err)
		}
		g := got.GetConfig()[0].GetGenericXdsConfigs()[0]
		dump := got.GetConfig()[0].GetXdsConfig()[0].GetClusterConfig().GetDynamicActiveClusters()
		if g.GetXdsConfig() != nil || g.GetErrorState().GetFailedConfiguration() != nil || dump[0].GetCluster() != nil || made != 0 {
			t.Errorf("contents (made %d times) in %v", made, got)
		}
		if g.GetErrorState().GetDetails() != "no" || g.GetVersionInfo() != "1" || dump[0].GetVersionInfo() != "1" {
			t.Errorf("more than contents is left out: %v", got)
		}
		if _, err = c.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); err != nil || made != 2 {
			t.Errorf("with contents: made %d times, %v", made, err)
		}
	})
}

func TestResourcesOfOtherClientsAreNotMade(t *testing.T) {
	source := fixed{{Node: &corev3.Node{Id: "other"}, Resources: func(func(Resource) bool) { t.Error("asked") }}}
	if _, err := NewServer(Options{}, source).FetchClientStatus(t.Context(), request(t, `{"node_id":{"exact":"me"}}`)); err != nil {
		t.Error(err)
	}
}

func TestALargeResponseIsRefused(t *testing.T) {
	asked := 0
	large := func(yield func(Resource) bool) {
		asked++
		yield(Resource{TypeURL: resourcev3.EndpointType, Name: "a", Body: func() *anypb.Any {
			return &anypb.Any{TypeUrl: resourcev3.EndpointType, Value: append([]byte{0x0a, 0xbc, 0x05}, make([]byte, 700)...)}
		}})
	}
	source := fixed{{Resources: large}, {Resources: large}, {Resources: large}}
	s := NewServer(Options{MaxBytes: 2000}, source)
	_, err := s.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "exclude_resource_contents") {
		t.Errorf("got %v", err)
	}
	if asked != 2 {
		t.Errorf("%d clients were looked at; the second is too much", asked)
	}
	if r, err := s.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{ExcludeResourceContents: true}); err != nil || len(r.GetConfig()) != 3 {
		t.Errorf("without contents: %v, %v", r, err)
	}
}

// blocking is a source that waits.
type blocking struct{ in, out chan struct{} }

func (g blocking) Clients(func(Client) bool) { g.in <- struct{}{}; <-g.out }

func TestAnswersAreMadeOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := blocking{make(chan struct{}, 9), make(chan struct{})}
		s := NewServer(Options{Concurrent: 1}, g)
		done := make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, err := s.FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); done <- err }()
		synctest.Wait()
		go func() { _, err := s.FetchClientStatus(ctx, &statusv3.ClientStatusRequest{}); done <- err }()
		synctest.Wait()
		if len(g.in) != 1 {
			t.Errorf("%d answers are being made, want 1", len(g.in))
		}
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("the one that gave up waiting: %v", err)
		}
		close(g.out)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsStreams(t *testing.T) {
	inBubble(t, Options{}, fleet(t), func(t *testing.T, s *Server, c statusv3.ClientStatusDiscoveryServiceClient) {
		stream, err := c.StreamClientStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close()
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("open: %v", err)
		}
		if stream, err = c.StreamClientStatus(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("new: %v", err)
		}
	})
}

func TestAClientThatDoesNotReadTimesOut(t *testing.T) {
	large := Resource{TypeURL: resourcev3.EndpointType, Name: strings.Repeat("n", 1<<20)}
	inBubble(t, Options{WriteTimeout: time.Minute}, fixed{{Resources: resources(large)}}, func(t *testing.T, _ *Server, c statusv3.ClientStatusDiscoveryServiceClient) {
		stream, err := c.StreamClientStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.Send(&statusv3.ClientStatusRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute) // in virtual time; nothing is read meanwhile
		for err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("ended with %v", err)
		}
	})
}
