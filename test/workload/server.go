package workload

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hdsd/test/authority"
)

// Said is what a Workload API gives its one workload.
type Said struct {
	ID        string
	Pair      authority.Pair
	Bundle    []*authority.Authority            // of the workload's own trust domain
	Federated map[string][]*authority.Authority // of others, such as spiffe://other
}

// Server is a Workload API.
type Server struct {
	workload.UnimplementedSpiffeWorkloadAPIServer
	t    testing.TB
	path string
	grpc *grpc.Server

	mu      sync.Mutex // guards the fields below
	said    *workload.X509SVIDResponse
	changed chan struct{} // closed when said changes
}

// Serve starts a Workload API that has nothing to say until Say. It ends with the test.
func Serve(t testing.TB) *Server {
	t.Helper()
	folder, err := os.MkdirTemp("", "workload") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, path: filepath.Join(folder, "agent.sock"), changed: make(chan struct{})}
	s.Start()
	t.Cleanup(func() { s.Stop(); os.RemoveAll(folder) })
	return s
}

// Address is that of the socket.
func (s *Server) Address() string { return "unix://" + s.path }

// Start serves, again after Stop.
func (s *Server) Start() {
	s.t.Helper()
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.grpc = grpc.NewServer()
	workload.RegisterSpiffeWorkloadAPIServer(s.grpc, s)
	go func() { _ = s.grpc.Serve(listener) }() // Stop ends it
}

// Stop goes away, as an agent that restarts.
func (s *Server) Stop() { s.grpc.Stop() }

// Say rotates: those who watch get it at once.
func (s *Server) Say(what Said) {
	s.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(what.Pair.PrivateKey)
	if err != nil {
		s.t.Fatal(err)
	}
	response := &workload.X509SVIDResponse{
		Svids: []*workload.X509SVID{{
			SpiffeId: what.ID, X509Svid: what.Pair.Certificate.Certificate[0], X509SvidKey: key, Bundle: bundle(what.Bundle),
		}},
		FederatedBundles: map[string][]byte{},
	}
	for domain, of := range what.Federated {
		response.FederatedBundles[domain] = bundle(of)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = response
	close(s.changed)
	s.changed = make(chan struct{})
}

func bundle(of []*authority.Authority) (all []byte) {
	for _, one := range of {
		all = append(all, one.Certificate.Raw...)
	}
	return all
}

// FetchX509SVID implements the Workload API.
func (s *Server) FetchX509SVID(_ *workload.X509SVIDRequest, to grpc.ServerStreamingServer[workload.X509SVIDResponse]) error {
	if asked, _ := metadata.FromIncomingContext(to.Context()); len(asked.Get("workload.spiffe.io")) == 0 {
		return status.Error(codes.InvalidArgument, "no security header")
	}
	for {
		s.mu.Lock()
		said, changed := s.said, s.changed
		s.mu.Unlock()
		if said == nil {
			return status.Error(codes.PermissionDenied, "no identity issued")
		}
		if err := to.Send(said); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-to.Context().Done():
			return to.Context().Err()
		}
	}
}
