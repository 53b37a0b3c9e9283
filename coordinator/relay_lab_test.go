package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// relaying is a configuration with a relay to a control plane, and nothing else.
func relaying(m *management, more string) string {
	text, _, _ := strings.Cut(quick, "sources:")
	return text + fmt.Sprintf("relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: x}}]}}%s}\n", m.address, more)
}

// dialWith connects, and shows a token on each stream.
func (s *site) dialWith(token string) *grpc.ClientConn {
	s.t.Helper()
	return s.dial(grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(
		func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			return open(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), d, c, method, o...)
		}))
}

// talker speaks one of the two variants of the protocol.
type talker interface {
	ask(typeURL string, names []string, had map[string]string)
	read() (*heard, error)
	reply(*heard, *rpcstatus.Status)
}

// heard is a response of either variant.
type heard struct {
	typeURL, version, nonce string
	resources               map[string]*anypb.Any
	versions                map[string]string
	removed                 []string
}

// client is a data plane that takes everything by an aggregated stream.
type client struct {
	t       *testing.T
	talker  talker
	node    *corev3.Node
	ended   chan error
	stop    context.CancelFunc
	refuses func(*heard) string // why it refuses a response; nil: it refuses nothing
	bad     string              // the name of a resource that it refuses; it takes the others of the response

	mu        sync.Mutex
	resources map[string]map[string]*anypb.Any // by type and name
	versions  map[string]map[string]string
	responses []*heard
}

// client connects a data plane, which asks for clusters, assignments (by name) and listeners.
func (s *site) client(delta bool, id string, assignments ...string) *client {
	s.t.Helper()
	c := s.newClient(delta, id)
	c.talker.ask(resourcev3.ClusterType, nil, nil)
	c.talker.ask(resourcev3.EndpointType, assignments, nil)
	c.talker.ask(resourcev3.ListenerType, nil, nil)
	go c.run()
	return c
}

func (s *site) newClient(delta bool, id string) *client {
	s.t.Helper()
	return newClient(s.t.(*testing.T), s.dial(), delta, id)
}

func newClient(t *testing.T, to *grpc.ClientConn, delta bool, id string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(to)
	c := &client{
		t: t, node: &corev3.Node{Id: id, Cluster: "edge"}, ended: make(chan error, 1),
		resources: map[string]map[string]*anypb.Any{}, versions: map[string]map[string]string{},
	}
	if delta {
		stream, err := ads.DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.talker = &deltaTalker{stream: stream, node: c.node}
	} else {
		stream, err := ads.StreamAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.talker = &stateTalker{stream: stream, node: c.node, names: map[string][]string{}, version: map[string]string{}}
	}
	c.stop = cancel
	t.Cleanup(cancel)
	return c
}

func (c *client) run() {
	for {
		h, err := c.talker.read()
		if err != nil {
			c.ended <- err
			return
		}
		var refusal *rpcstatus.Status
		if c.refuses != nil {
			if why := c.refuses(h); why != "" {
				refusal = &rpcstatus.Status{Code: 13, Message: why}
			}
		}
		good := h
		if h.resources[c.bad] != nil {
			refusal = &rpcstatus.Status{Code: 13, Message: c.bad + " is bad"}
			good = &heard{typeURL: h.typeURL, resources: maps.Clone(h.resources), versions: h.versions, removed: h.removed}
			delete(good.resources, c.bad)
		}
		c.mu.Lock()
		c.responses = append(c.responses, h)
		if refusal == nil || good != h {
			c.take(good)
		}
		c.mu.Unlock()
		c.talker.reply(h, refusal)
	}
}

func (c *client) take(h *heard) {
	_, delta := c.talker.(*deltaTalker)
	if c.resources[h.typeURL] == nil || !delta && h.typeURL != resourcev3.EndpointType {
		c.resources[h.typeURL], c.versions[h.typeURL] = map[string]*anypb.Any{}, map[string]string{}
	}
	for name, r := range h.resources {
		c.resources[h.typeURL][name], c.versions[h.typeURL][name] = r, h.versions[name]
	}
	for _, name := range h.removed {
		delete(c.resources[h.typeURL], name)
		delete(c.versions[h.typeURL], name)
	}
}

// cluster is what the client has of a cluster; nil: nothing.
func (c *client) cluster(name string) *clusterv3.Cluster {
	k := &clusterv3.Cluster{}
	if !c.get(resourcev3.ClusterType, name, k) {
		return nil
	}
	return k
}

// assignment is what the client has of an assignment; nil: nothing.
func (c *client) assignment(name string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{}
	if !c.get(resourcev3.EndpointType, name, a) {
		return nil
	}
	return a
}

func (c *client) get(typeURL, name string, to proto.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	packed := c.resources[typeURL][name]
	return packed != nil && packed.UnmarshalTo(to) == nil
}

// health is what the client has of the first endpoint of an assignment.
func (c *client) health(name string) string {
	a := c.assignment(name)
	if a == nil || len(a.GetEndpoints()) == 0 {
		return ""
	}
	return a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus().String()
}

type deltaTalker struct {
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node
	mu     sync.Mutex
}

func (d *deltaTalker) send(r *discoveryv3.DeltaDiscoveryRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Node, d.node = d.node, nil
	_ = d.stream.Send(r) // read returns the reason
}

func (d *deltaTalker) ask(typeURL string, names []string, had map[string]string) {
	d.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names, InitialResourceVersions: had})
}

func (d *deltaTalker) read() (*heard, error) {
	r, err := d.stream.Recv()
	if err != nil {
		return nil, err
	}
	h := &heard{typeURL: r.GetTypeUrl(), version: r.GetSystemVersionInfo(), nonce: r.GetNonce(), resources: map[string]*anypb.Any{}, versions: map[string]string{}, removed: r.GetRemovedResources()}
	for _, one := range r.GetResources() {
		h.resources[one.GetName()], h.versions[one.GetName()] = one.GetResource(), one.GetVersion()
	}
	return h, nil
}

func (d *deltaTalker) reply(h *heard, refusal *rpcstatus.Status) {
	d.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: h.typeURL, ResponseNonce: h.nonce, ErrorDetail: refusal})
}

type stateTalker struct {
	stream  discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	mu      sync.Mutex
	node    *corev3.Node
	names   map[string][]string
	version map[string]string
}

// send sends a request with the names and the version of its type, once change has changed them.
func (d *stateTalker) send(r *discoveryv3.DiscoveryRequest, change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	r.ResourceNames, r.VersionInfo = d.names[r.GetTypeUrl()], d.version[r.GetTypeUrl()]
	r.Node, d.node = d.node, nil
	_ = d.stream.Send(r) // read returns the reason
}

func (d *stateTalker) ask(typeURL string, names []string, _ map[string]string) {
	d.send(&discoveryv3.DiscoveryRequest{TypeUrl: typeURL}, func() { d.names[typeURL] = names })
}

func (d *stateTalker) read() (*heard, error) {
	r, err := d.stream.Recv()
	if err != nil {
		return nil, err
	}
	h := &heard{typeURL: r.GetTypeUrl(), version: r.GetVersionInfo(), nonce: r.GetNonce(), resources: map[string]*anypb.Any{}, versions: map[string]string{}}
	for _, packed := range r.GetResources() {
		m, err := packed.UnmarshalNew()
		if err != nil {
			return nil, err
		}
		name := ""
		switch m := m.(type) {
		case *endpointv3.ClusterLoadAssignment:
			name = m.GetClusterName()
		case interface{ GetName() string }:
			name = m.GetName()
		}
		h.resources[name], h.versions[name] = packed, r.GetVersionInfo()
	}
	return h, nil
}

func (d *stateTalker) reply(h *heard, refusal *rpcstatus.Status) {
	d.send(&discoveryv3.DiscoveryRequest{TypeUrl: h.typeURL, ResponseNonce: h.nonce, ErrorDetail: refusal}, func() {
		if refusal == nil {
			d.version[h.typeURL] = h.version
		}
	})
}

// bothVariants runs a test for delta and for state of the world.
func bothVariants(t *testing.T, test func(t *testing.T, delta bool)) {
	for name, delta := range map[string]bool{"delta": true, "state": false} {
		t.Run(name, func(t *testing.T) { test(t, delta) })
	}
}

// fails makes an upstream fail.
const fails = http.StatusServiceUnavailable
