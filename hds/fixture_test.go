package hds_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy"
	"hdsd/envoy/specifier"
	"hdsd/hds"
	"hdsd/health"
)

// recorder is a sink that writes down its calls.
type recorder struct {
	mu          sync.Mutex
	calls       []string
	onConnected func(health.Checker)
	onReported  func(id string)
}

func (r *recorder) add(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorder) Connected(c health.Checker) {
	r.add("connected " + c.ID)
	if r.onConnected != nil {
		r.onConnected(c)
	}
}

func (r *recorder) Disconnected(id string) { r.add("disconnected " + id) }
func (r *recorder) Ended(id string)        { r.add("ended " + id) }

func (r *recorder) Accepted(string, *specifier.Specifier) {}
func (r *recorder) Silent(string, bool)                   {}

func (r *recorder) Reported(id string, votes []health.Vote) {
	r.add("reported " + id + votesText(votes))
	if r.onReported != nil {
		r.onReported(id)
	}
}

func votesText(votes []health.Vote) string {
	var text strings.Builder
	if votes != nil && len(votes) == 0 {
		return " no votes, yet not nil"
	}
	for _, v := range votes {
		fmt.Fprintf(&text, " %d=%s", v.Endpoint, v.Status)
		if v.HTTPStatusCode != 0 {
			fmt.Fprintf(&text, "/%d", v.HTTPStatusCode)
		}
	}
	return text.String()
}

// take gives the calls since the last take, when nothing moves any more.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fixture is a server in a bubble.
type fixture struct {
	*testing.T
	server   *hds.Server
	grpc     *grpc.Server
	sink     *recorder
	log      *logged
	registry *prometheus.Registry
	ctx      context.Context
	hosts    map[string]*bufconn.Listener
}

// bubble runs a test with a server, in virtual time.
func bubble(t *testing.T, o hds.Options, run func(f *fixture)) {
	r := &recorder{}
	bubbleWith(t, o, r, r, run)
}

// bubbleWith is bubble with a sink that r is a part of.
func bubbleWith(t *testing.T, o hds.Options, sink hds.Sink, r *recorder, run func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			T: t, sink: r, log: &logged{},
			registry: prometheus.NewRegistry(), hosts: make(map[string]*bufconn.Listener),
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		f.ctx = ctx
		o.Log, o.Registerer = zerolog.New(f.log), f.registry
		f.server = hds.NewServer(o, sink)
		f.grpc = grpc.NewServer(hds.ServerOptions(o)...)
		f.server.Register(f.grpc)
		run(f)
		f.server.Close()
		cancel()
		f.grpc.Stop()
	})
}

// from is a listener that sees all its peers at one address.
type from struct {
	*bufconn.Listener
	address net.Addr
	wrap    func(net.Conn) net.Conn
}

func (l *from) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(&peered{conn, l.address}), nil
}

type peered struct {
	net.Conn
	address net.Addr
}

func (p *peered) RemoteAddr() net.Addr { return p.address }

// dial connects from a host.
func (f *fixture) dial(host string, options ...grpc.DialOption) *grpc.ClientConn {
	f.Helper()
	if f.hosts[host] == nil {
		f.listen(host, func(c net.Conn) net.Conn { return c })
	}
	ln := f.hosts[host]
	conn, err := grpc.NewClient("passthrough:///hds", append(options,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return ln.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (f *fixture) listen(host string, wrap func(net.Conn) net.Conn) {
	ln := bufconn.Listen(1 << 20)
	f.hosts[host] = ln
	address := &net.TCPAddr{IP: net.ParseIP(host), Port: 40000}
	go func() { _ = f.grpc.Serve(&from{ln, address, wrap}) }()
}

// client is one stream of a checker.
type client struct {
	f      *fixture
	stream healthv3.HealthDiscoveryService_StreamHealthCheckClient
	cancel context.CancelFunc
}

func (f *fixture) open(conn *grpc.ClientConn) *client {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	stream, err := healthv3.NewHealthDiscoveryServiceClient(conn).StreamHealthCheck(ctx)
	if err != nil {
		f.Fatal(err)
	}
	return &client{f, stream, cancel}
}

// connect opens a stream and says who it is.
func (f *fixture) connect(id, host, zone string) *client {
	f.Helper()
	c := f.open(f.dial(host))
	c.send(hello(&corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}, UserAgentName: "envoy"}))
	return c
}

func hello(node *corev3.Node) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
			HealthCheckRequest: &healthv3.HealthCheckRequest{Node: node, Capability: &healthv3.Capability{
				HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP},
			}},
		},
	}
}

func (c *client) send(m *healthv3.HealthCheckRequestOrEndpointHealthResponse) {
	c.f.Helper()
	if err := c.stream.Send(m); err != nil {
		c.f.Fatalf("sending: %v", err)
	}
}

// next gives the next specifier as text.
func (c *client) next() string {
	c.f.Helper()
	m, err := c.stream.Recv()
	if err != nil {
		c.f.Fatalf("receiving: %v", err)
	}
	return specifierText(m)
}

// failure gives the status that the stream ends with.
func (c *client) failure() *status.Status {
	for {
		if _, err := c.stream.Recv(); err != nil {
			return status.Convert(err)
		}
	}
}

func (c *client) fails(code codes.Code, with string) {
	c.f.Helper()
	if got := c.failure(); got.Code() != code || !strings.Contains(got.Message(), with) {
		c.f.Errorf("the stream ended with %s %q, want %s and %q", got.Code(), got.Message(), code, with)
	}
}

func specifierText(m *healthv3.HealthCheckSpecifier) string {
	var text strings.Builder
	for _, c := range m.GetClusterHealthChecks() {
		fmt.Fprintf(&text, "%s{", c.GetClusterName())
		for _, l := range c.GetLocalityEndpoints() {
			fmt.Fprintf(&text, "%s:", l.GetLocality().GetZone())
			for _, e := range l.GetEndpoints() {
				a := e.GetAddress().GetSocketAddress()
				fmt.Fprintf(&text, "%s:%d,", a.GetAddress(), a.GetPortValue())
			}
		}
		text.WriteString("}")
	}
	return text.String()
}

// checked is an endpoint to be checked: cluster/zone/address.
type checked struct {
	id   health.EndpointID
	name string
}

func (c checked) parts() (cluster, zone, address string) {
	parts := strings.SplitN(c.name, "/", 3)
	return parts[0], parts[1], parts[2]
}

// assignment makes a specifier of endpoints in the order given.
func assignment(endpoints ...checked) *specifier.Specifier {
	s := &specifier.Specifier{Interval: time.Second, Special: map[int]*endpointv3.Endpoint{}}
	for i, e := range endpoints {
		cluster, zone, address := e.parts()
		if n := len(s.Clusters); n == 0 || s.Clusters[n-1].Head.GetClusterName() != cluster {
			s.Clusters = append(s.Clusters, specifier.Part{Head: &healthv3.ClusterHealthCheck{ClusterName: cluster}})
		}
		c := &s.Clusters[len(s.Clusters)-1]
		if n := len(c.Localities); n == 0 || c.Localities[n-1].Locality.GetZone() != zone {
			c.Localities = append(c.Localities, specifier.Group{Locality: &corev3.Locality{Zone: zone}})
		}
		c.Localities[len(c.Localities)-1].Entries++
		s.Special[i] = endpointAt(address)
		s.Order = append(s.Order, e.id)
		s.Addresses = append(s.Addresses, address)
	}
	return s
}

// specifierOf makes a specifier of a message, with an order from 0.
func specifierOf(m *healthv3.HealthCheckSpecifier) *specifier.Specifier {
	s := &specifier.Specifier{Interval: m.GetInterval().AsDuration(), Special: map[int]*endpointv3.Endpoint{}}
	for _, c := range m.GetClusterHealthChecks() {
		head := proto.CloneOf(c)
		head.LocalityEndpoints = nil
		p := specifier.Part{Head: head}
		for _, l := range c.GetLocalityEndpoints() {
			p.Localities = append(p.Localities, specifier.Group{Locality: l.GetLocality(), Entries: len(l.GetEndpoints())})
			for _, e := range l.GetEndpoints() {
				s.Special[len(s.Order)] = e
				s.Order, s.Addresses = append(s.Order, health.EndpointID(len(s.Order))), append(s.Addresses, envoy.Address(e.GetAddress()))
			}
		}
		s.Clusters = append(s.Clusters, p)
	}
	return s
}

func endpointAt(address string) *endpointv3.Endpoint {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: address}}}}
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		panic(err)
	}
	return &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
	}}}}
}

// said is an entry of a report.
type said struct {
	name   string // cluster/zone/address
	status corev3.HealthStatus
	code   int
}

// report makes a report as Envoy does, everything twice.
func report(entries ...said) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	if len(entries) == 0 {
		return &healthv3.HealthCheckRequestOrEndpointHealthResponse{}
	}
	r := &healthv3.EndpointHealthResponse{}
	for _, s := range entries {
		cluster, zone, address := checked{name: s.name}.parts()
		e := &healthv3.EndpointHealth{Endpoint: endpointAt(address), HealthStatus: s.status}
		if s.code != 0 {
			e.HealthMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"http_status_code": structpb.NewNumberValue(float64(s.code))}}
		}
		if n := len(r.ClusterEndpointsHealth); n == 0 || r.ClusterEndpointsHealth[n-1].GetClusterName() != cluster {
			r.ClusterEndpointsHealth = append(r.ClusterEndpointsHealth, &healthv3.ClusterEndpointsHealth{ClusterName: cluster})
		}
		c := r.ClusterEndpointsHealth[len(r.ClusterEndpointsHealth)-1]
		if n := len(c.LocalityEndpointsHealth); n == 0 || c.LocalityEndpointsHealth[n-1].GetLocality().GetZone() != zone {
			c.LocalityEndpointsHealth = append(c.LocalityEndpointsHealth, &healthv3.LocalityEndpointsHealth{Locality: &corev3.Locality{Zone: zone}})
		}
		l := c.LocalityEndpointsHealth[len(c.LocalityEndpointsHealth)-1]
		l.EndpointsHealth = append(l.EndpointsHealth, e)
		r.EndpointsHealth = append(r.EndpointsHealth, e) //nolint:staticcheck // as Envoy does
	}
	return reportMessage(r)
}

func reportMessage(r *healthv3.EndpointHealthResponse) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{EndpointHealthResponse: r},
	}
}

func same[T cmp.Ordered](t testing.TB, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// counted gives the value of a counter or gauge without labels.
func (f *fixture) counted(name string) float64 {
	f.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	f.Fatalf("there is no metric %s", name)
	return 0
}
