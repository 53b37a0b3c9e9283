package xds

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"hdsd/source"
)

// network is servers by name, without a real network.
type network struct {
	t  testing.TB
	mu sync.Mutex
	at map[string]*bufconn.Listener
}

func newNetwork(t testing.TB) *network {
	t.Helper()
	return &network{t: t, at: make(map[string]*bufconn.Listener)}
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	listener := n.at[strings.TrimSuffix(address, ":80")]
	n.mu.Unlock()
	if listener == nil {
		return nil, fmt.Errorf("nobody is at %s", address)
	}
	return listener.DialContext(ctx)
}

func (n *network) listen(name string) *bufconn.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at[name] = bufconn.Listen(1 << 20)
	return n.at[name]
}

func (n *network) leave(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.at, name)
}

// serve serves gRPC under a name until stop.
func (n *network) serve(name string, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) (stop func()) {
	n.t.Helper()
	server := grpc.NewServer(options...)
	register(server)
	listener := n.listen(name)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	return func() {
		n.leave(name)
		server.Stop()
		served.Wait()
	}
}

// serveHTTP serves HTTP under a name until stop.
func (n *network) serveHTTP(name string, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	listener := n.listen(name)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	return func() {
		n.leave(name)
		_ = server.Close()
		served.Wait()
	}
}

// running is a source that runs, with the sets that it handed on.
type running struct {
	t testing.TB
	*Source
	sets chan *source.Set
	stop func()
}

// run starts a source in a network. Stop has to be called.
func (n *network) run(from *corev3.ConfigSource, change ...func(*Options)) *running {
	n.t.Helper()
	options := Options{Name: "upstream", Node: &corev3.Node{Id: "hdsd-test"}, ConfigSource: from}
	for _, c := range change {
		c(&options)
	}
	s, err := New(options)
	if err != nil {
		n.t.Fatal(err)
	}
	s.dialer = n.dial
	return n.start(s)
}

func (n *network) start(s *Source) *running {
	r := &running{t: n.t, Source: s, sets: make(chan *source.Set, 10_000)}
	ctx, cancel := context.WithCancel(context.Background())
	var owned sync.WaitGroup
	owned.Go(func() {
		if err := s.Run(ctx, func(set *source.Set) { r.sets <- set }); err != nil {
			n.t.Errorf("run: %v", err)
		}
	})
	r.stop = func() {
		cancel()
		owned.Wait()
	}
	return r
}

// latest returns the last set that was handed on, as soon as one may be.
func (r *running) latest() *source.Set {
	r.t.Helper()
	time.Sleep(deliveryPause)
	synctest.Wait()
	var last *source.Set
	for {
		select {
		case set := <-r.sets:
			last = set
		default:
			if last == nil {
				r.t.Fatal("nothing was handed on")
			}
			return last
		}
	}
}

// nothing checks that nothing was handed on, though it could have been.
func (r *running) nothing() {
	r.t.Helper()
	time.Sleep(deliveryPause)
	r.notYet()
}

// notYet checks that nothing was handed on, without time passing.
func (r *running) notYet() {
	r.t.Helper()
	synctest.Wait()
	select {
	case set := <-r.sets:
		r.t.Fatalf("handed on: %s", said(set))
	default:
	}
}

// said tells what a set holds, as "web=10.0.0.1 db=none !api" and its problems.
func said(set *source.Set) string {
	var all []string
	for _, c := range set.Clusters {
		text := c.Name + "=none"
		if c.Assignment != nil {
			text = c.Name + "=" + addresses(c.Assignment.Message())
		}
		if c.Rejected != "" {
			text = "!" + text
		}
		all = append(all, text)
	}
	if set.Unread {
		all = append(all, "unread")
	}
	return strings.Join(all, " ")
}

func addresses(a *endpointv3.ClusterLoadAssignment) string {
	var all []string
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			all = append(all, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return strings.Join(all, ",")
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("%s: %q is not in %q", what, part, text)
		}
	}
}
