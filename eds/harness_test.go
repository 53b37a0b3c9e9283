package eds

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/publish"
)

// bench is a server with a connection to it, inside a synctest bubble.
type bench struct {
	t      *testing.T
	server *Server
	conn   *grpc.ClientConn
}

// rounds is how often a test repeats what chance decides: a few times, or more with SOAK, as in
// make soak.
func rounds(few, more int) int {
	if os.Getenv("SOAK") != "" {
		return more
	}
	return few
}

// inBubble runs a test twice: with a server on which few names make no group, and with one on
// which any do.
func inBubble(t *testing.T, o Options, test func(t *testing.T, b *bench)) {
	t.Helper()
	for _, o.fewestShared = range []int{0, 1} {
		inOneBubble(t, o, test)
	}
}

// inOneBubble runs a test with a server behind an in-memory connection. Every goroutine has to
// end before it returns.
func inOneBubble(t *testing.T, o Options, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Identifier = "hdsd-test"
		server := NewServer(o)
		conn, stop := serve(t, server.Register)
		defer func() { // also when the test gives up
			conn.Close()
			server.Close()
			stop()
		}()
		test(t, &bench{t: t, server: server, conn: conn})
	})
}

// serve returns a connection to a server with the services that register adds.
func serve(t *testing.T, register func(grpc.ServiceRegistrar)) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	transport := grpc.NewServer(wire.ServerOption())
	register(transport)
	served := make(chan error, 1)
	go func() { served <- transport.Serve(listener) }()
	// A window of a fixed size makes it known how much an unread stream takes.
	conn, err := grpc.NewClient("passthrough:test",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(1<<16), grpc.WithStaticConnWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		transport.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}

// xdsPeer is a client's stream; what it receives waits in a channel.
type xdsPeer[Req, Res any] struct {
	b        *bench
	stream   grpc.BidiStreamingClient[Req, Res]
	received chan *Res
	ended    chan error
	cancel   context.CancelFunc
}

type (
	deltaPeer = xdsPeer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	statePeer = xdsPeer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]
)

func newPeer[Req, Res any](b *bench, open func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Req, Res], error)) *xdsPeer[Req, Res] {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := open(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	p := &xdsPeer[Req, Res]{b: b, stream: stream, received: make(chan *Res, 1000), ended: make(chan error, 1), cancel: cancel}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				p.ended <- err
				return
			}
			p.received <- m
		}
	}()
	return p
}

func (b *bench) delta() *deltaPeer {
	b.t.Helper()
	return newPeer(b, discoveryv3.NewAggregatedDiscoveryServiceClient(b.conn).DeltaAggregatedResources)
}

func (b *bench) state() *statePeer {
	b.t.Helper()
	return newPeer(b, discoveryv3.NewAggregatedDiscoveryServiceClient(b.conn).StreamAggregatedResources)
}

func (p *xdsPeer[Req, Res]) send(m *Req) {
	p.b.t.Helper()
	if err := p.stream.Send(m); err != nil {
		p.b.t.Fatalf("send: %v", err)
	}
}

// next returns the response that the server sends without another event.
func (p *xdsPeer[Req, Res]) next() *Res {
	p.b.t.Helper()
	synctest.Wait()
	select {
	case m := <-p.received:
		return m
	case err := <-p.ended:
		p.b.t.Fatalf("the stream ended: %v", err)
	default:
		p.b.t.Fatal("no response")
	}
	return nil
}

func (p *xdsPeer[Req, Res]) nothing() {
	p.b.t.Helper()
	synctest.Wait()
	select {
	case m := <-p.received:
		p.b.t.Fatalf("unexpected response: %v", m)
	case err := <-p.ended:
		p.b.t.Fatalf("the stream ended: %v", err)
	default:
	}
}

// together makes changes at once: no sender sees only some of them.
func (b *bench) together(change func()) {
	for st := range b.server.streams.open {
		st.mu.Lock()
		defer st.mu.Unlock()
	}
	change()
}

func node(id string) *corev3.Node { return &corev3.Node{Id: id} }

func subscribe(typeURL string, names ...string) *discoveryv3.DeltaDiscoveryRequest {
	return &discoveryv3.DeltaDiscoveryRequest{Node: node("dp-1"), TypeUrl: typeURL, ResourceNamesSubscribe: names}
}

func unsubscribe(typeURL string, names ...string) *discoveryv3.DeltaDiscoveryRequest {
	return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesUnsubscribe: names}
}

func ack(r *discoveryv3.DeltaDiscoveryResponse) *discoveryv3.DeltaDiscoveryRequest {
	return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
}

func nack(r *discoveryv3.DeltaDiscoveryResponse, why string) *discoveryv3.DeltaDiscoveryRequest {
	m := ack(r)
	m.ErrorDetail = &statuspb.Status{Code: 3, Message: why}
	return m
}

func want(typeURL string, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{Node: node("dp-1"), TypeUrl: typeURL, ResourceNames: names}
}

func ackState(r *discoveryv3.DiscoveryResponse, names ...string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{
		TypeUrl: r.GetTypeUrl(), ResourceNames: names, ResponseNonce: r.GetNonce(), VersionInfo: r.GetVersionInfo(),
	}
}

func nackState(r *discoveryv3.DiscoveryResponse, why string, names ...string) *discoveryv3.DiscoveryRequest {
	m := ackState(r, names...)
	m.VersionInfo = ""
	m.ErrorDetail = &statuspb.Status{Code: 3, Message: why}
	return m
}

// describe returns what a delta response holds, as "[-c a=HE b=UN]".
func describe(r *discoveryv3.DeltaDiscoveryResponse) string {
	var all []string
	for _, resource := range r.GetResources() {
		all = append(all, resource.GetName()+"="+summary(resource.GetResource().GetTypeUrl(), resource.GetResource().GetValue()))
	}
	for _, name := range r.GetRemovedResources() {
		all = append(all, "-"+name)
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func describeState(r *discoveryv3.DiscoveryResponse) string {
	var all []string
	for _, resource := range r.GetResources() {
		name := ""
		if resource.GetTypeUrl() == resourcev3.ClusterType {
			c := new(clusterv3.Cluster)
			mustUnmarshal(resource.GetValue(), c)
			name = c.GetName()
		} else {
			a := new(endpointv3.ClusterLoadAssignment)
			mustUnmarshal(resource.GetValue(), a)
			name = a.GetClusterName()
		}
		all = append(all, name+"="+summary(resource.GetTypeUrl(), resource.GetValue()))
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// summary returns the health of an assignment's endpoints, or a cluster's alternative
// name.
func summary(typeURL string, value []byte) string {
	if typeURL == resourcev3.ClusterType {
		c := new(clusterv3.Cluster)
		mustUnmarshal(value, c)
		return c.GetAltStatName()
	}
	a := new(endpointv3.ClusterLoadAssignment)
	mustUnmarshal(value, a)
	text := ""
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			text += e.GetHealthStatus().String()[:2]
		}
	}
	return text
}

func mustUnmarshal(b []byte, m proto.Message) {
	if err := proto.Unmarshal(b, m); err != nil {
		panic(err)
	}
}

// assignment makes an assignment of n endpoints, whose ids count from first.
func assignment(name string, first health.EndpointID, n int) publish.Assignment {
	locality := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: "a"}}
	var ids [][]health.EndpointID
	for i := range n {
		locality.LbEndpoints = append(locality.LbEndpoints, lbEndpoint(uint32(i)))
		ids = append(ids, []health.EndpointID{first + health.EndpointID(i)})
	}
	return publish.Assignment{
		Name: name,
		Wire: wireOf(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}),
		IDs:  [][][]health.EndpointID{ids},
	}
}

func messageOf(a publish.Assignment) *endpointv3.ClusterLoadAssignment { return a.Message() }

// wireOf encodes an assignment.
func wireOf(m *endpointv3.ClusterLoadAssignment) []byte {
	wire, err := deterministic.Marshal(m)
	if err != nil {
		panic(err)
	}
	return wire
}

func lbEndpoint(i uint32) *endpointv3.LbEndpoint {
	address := &corev3.SocketAddress{
		Address:       fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
	}
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: address}},
	}}}
}

// cluster makes a cluster that summary shows as text.
func cluster(name, text string) *clusterv3.Cluster {
	return publish.TakeOver(&clusterv3.Cluster{Name: name, AltStatName: text}, publish.ByADS())
}

// clusters makes clusters of pairs of name and text.
func clusters(pairs ...string) (all []publish.Cluster) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, publish.Cluster{Message: cluster(pairs[i], pairs[i+1]), Checked: true})
	}
	return all
}

func (s *Server) setHealth(id health.EndpointID, status health.Status) {
	s.SetHealth([]publish.Health{{ID: id, Status: status}})
}

// publish publishes assignments of one HEALTHY endpoint each, with ids 0, 1, ...
func (b *bench) publish(names ...string) {
	u := publish.Update{}
	for i, name := range names {
		b.server.setHealth(health.EndpointID(i), health.Healthy)
		u.Assignments = append(u.Assignments, assignment(name, health.EndpointID(i), 1))
	}
	b.server.Update(u)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func versions(r *discoveryv3.DeltaDiscoveryResponse) map[string]string {
	return maps.Collect(func(yield func(string, string) bool) {
		for _, resource := range r.GetResources() {
			if !yield(resource.GetName(), resource.GetVersion()) {
				return
			}
		}
	})
}

func assignmentNameOf(value []byte) string {
	a := new(endpointv3.ClusterLoadAssignment)
	mustUnmarshal(value, a)
	return a.GetClusterName()
}

// heap returns how many bytes are in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
