package coordinator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pki "hdsd/test/authority"
)

// TestWhatTheControlPlaneIsToldOfAClient, by relay.forward: nothing, its certificate, or
// its token.
func TestWhatTheControlPlaneIsToldOfAClient(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	pair := ca.Issue(t, "edge-1")
	hash := sha256.Sum256(pair.Certificate.Certificate[0])
	for _, test := range []struct{ forward, certificate, token string }{
		{"NONE", "", ""},
		{"CLIENT_CERTIFICATE", "Hash=" + hex.EncodeToString(hash[:]) + ";", ""},
		{"AUTHORIZATION", "", "Bearer x"},
	} {
		t.Run(test.forward, func(t *testing.T) {
			t.Parallel()
			m := newManagement(t)
			opened := make(chan metadata.MD, 1)
			m.hears.onOpen = func(ctx context.Context) {
				md, _ := metadata.FromIncomingContext(ctx)
				opened <- md
			}
			m.come()
			m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
			tls := strings.Replace(relaying(m, ", forward: "+test.forward), `grpc: {address: "127.0.0.1:0"`, `grpc: {address: "127.0.0.1:0", `+mutual, 1)
			s := secured(t, ca, tls)
			s.ready()
			to := s.dial(grpc.WithTransportCredentials(credentials.NewTLS(trusting(ca, pair))), grpc.WithStreamInterceptor(
				func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					return open(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer x", "x-forwarded-client-cert", "forged"), d, c, method, o...)
				}))
			c := newClient(t, to, true, "edge-1")
			c.talker.ask(resourcev3.ClusterType, nil, nil)
			md := <-opened
			if got := strings.Join(md.Get("authorization"), "|"); got != test.token {
				t.Errorf("authorization: %q, want %q", got, test.token)
			}
			got := strings.Join(md.Get("x-forwarded-client-cert"), "|")
			if !strings.HasPrefix(got, test.certificate) || test.certificate == "" && got != "" {
				t.Errorf("x-forwarded-client-cert: %q, want %q", got, test.certificate)
			}
		})
	}
}

// TestTheRelayNeedsARoleForAllClusters: it cannot hide a part of what passes.
func TestTheRelayNeedsARoleForAllClusters(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("x"))
	token := hex.EncodeToString(sum[:])
	for glob, want := range map[string]codes.Code{"": codes.Unavailable, ", cluster_name_glob: 'pay-*'": codes.PermissionDenied} {
		m := newManagement(t) // which is away
		s := newSite(t, t.TempDir(), relaying(m, "")+"access: {grants: [{roles: [DATA_PLANE], token_sha256: '"+token+"'"+glob+"}]}\n", "")
		s.eventually("the service", func() bool { code, _ := s.get("/readyz"); return code == 200 })
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer x")
		stream, err := s.dial().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners")
		if err == nil {
			_ = stream.SendMsg(&corev3.Node{}) // an empty request
			err = stream.RecvMsg(&corev3.Node{})
		}
		if status.Code(err) != want {
			t.Errorf("%q: got %v, want %s", glob, err, want)
		}
	}
}
