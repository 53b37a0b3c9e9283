package proxyless

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"
)

// Backend is a gRPC server, and what its health service says.
type Backend struct {
	Address string

	health *health.Server
}

// NewBackend starts one that is well. The header "peer" of its answers is its address.
func NewBackend(t testing.TB) *Backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Backend{Address: listener.Addr().String(), health: health.NewServer()}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := grpc.SetHeader(ctx, metadata.Pairs("peer", b.Address)); err != nil {
			return nil, err
		}
		return handle(ctx, request)
	}))
	healthv1.RegisterHealthServer(server, b.health)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) }) // until it is stopped
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	return b
}

// Fail has it say that it does not serve. It goes on answering.
func (b *Backend) Fail() { b.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING) }

// Recover has it say that it serves.
func (b *Backend) Recover() { b.health.SetServingStatus("", healthv1.HealthCheckResponse_SERVING) }

// Node is what a client says of itself.
type Node struct {
	ID       string         `json:"id"`
	Locality struct{}       `json:"locality"` // Node.js's client needs one
	Metadata map[string]any `json:"metadata,omitempty"`
}

// Server is an xDS server without TLS.
type Server struct {
	Address  string
	Features []string // besides xds_v3
}

// MarshalJSON writes a server as a bootstrap has it.
func (s Server) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"server_uri": s.Address, "channel_creds": []map[string]string{{"type": "insecure"}}, "server_features": append([]string{"xds_v3"}, s.Features...),
	})
}

// Authority is who answers for names of an authority.
type Authority struct {
	Servers []Server `json:"xds_servers"`
}

// Bootstrap tells a client whom to ask.
type Bootstrap struct {
	Node        Node                 `json:"node"`
	Servers     []Server             `json:"xds_servers"`
	Authorities map[string]Authority `json:"authorities,omitempty"`
}

// Client calls what a target such as "xds:///shop" leads to.
type Client struct {
	t    testing.TB
	conn *grpc.ClientConn
}

// NewClient makes a client of a target.
func NewClient(t testing.TB, target string, b Bootstrap) *Client {
	t.Helper()
	bootstrap, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{t: t, conn: conn}
}

// Reach makes 20 calls, none of which may fail, and tells which of some backends they
// reached.
func (c *Client) Reach(backends ...*Backend) []bool {
	c.t.Helper()
	reached := make([]bool, len(backends))
	for range 20 {
		at := c.call()
		for i, b := range backends {
			reached[i] = reached[i] || b.Address == at
		}
	}
	return reached
}

// KeepCalling makes a call each millisecond, one after the other, until the channel is closed.
// None may fail, nor wait for a connection.
func (c *Client) KeepCalling(ended <-chan struct{}) {
	next := time.NewTicker(time.Millisecond)
	defer next.Stop()
	for calls := 0; ; calls++ {
		select {
		case <-ended:
			if c.t.Logf("%s: %d calls", c.conn.Target(), calls); calls == 0 {
				c.t.Error("no calls were made")
			}
			return
		case <-next.C:
		}
		if _, err := healthv1.NewHealthClient(c.conn).List(c.t.Context(), &healthv1.HealthListRequest{}); err != nil {
			c.t.Errorf("%s: a call after %d others fails: %v", c.conn.Target(), calls, err)
			return
		}
	}
}

func (c *Client) call() (at string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var by peer.Peer
	if _, err := healthv1.NewHealthClient(c.conn).List(ctx, &healthv1.HealthListRequest{}, grpc.Peer(&by), grpc.WaitForReady(true)); err != nil {
		c.t.Fatal(err)
	}
	return by.Addr.String()
}
