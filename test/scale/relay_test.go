package scale

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/publish"
)

// relayedNode is a data plane that holds each resource against what the control plane said.
type relayedNode struct {
	t    testing.TB
	kind int
	id   string
	said map[string]map[string][]byte
	seen func(assignment string, at time.Time, statuses []corev3.HealthStatus)

	stream    discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	relieved  map[string]bool // clusters that came without health checks; only run's goroutine uses it
	unchecked atomic.Int32    // their number
	started   time.Duration   // until the listener came
	synced    chan struct{}   // closed then
	ended     chan struct{}
}

func dialRelay(t testing.TB, server string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run takes clusters, their assignments, and then a listener, as an Envoy does.
func (n *relayedNode) run(ctx context.Context, server string) {
	defer close(n.ended)
	done := sync.OnceFunc(func() { close(n.synced) })
	defer done() // nobody waits for a stream that has ended
	conn := dialRelay(n.t, server)
	defer conn.Close()
	began := time.Now()
	var err error
	if n.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx); err != nil {
		n.t.Error(err)
		return
	}
	n.ask(resourcev3.ClusterType, "")
	for first := map[string]bool{}; ; {
		r, err := n.stream.Recv()
		if err != nil {
			if ctx.Err() == nil {
				n.t.Errorf("%s: %v", n.id, err)
			}
			return
		}
		n.hold(r)
		n.ask(r.GetTypeUrl(), r.GetNonce())
		if first[r.GetTypeUrl()] {
			continue
		}
		first[r.GetTypeUrl()] = true
		switch r.GetTypeUrl() {
		case resourcev3.ClusterType:
			n.ask(resourcev3.EndpointType, "")
		case resourcev3.EndpointType:
			n.ask(resourcev3.ListenerType, "")
		default:
			n.started = time.Since(began)
			done()
		}
	}
}

func (n *relayedNode) ask(typeURL, nonce string) {
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: nonce}
	if nonce == "" {
		r.Node = &corev3.Node{Id: n.id, Cluster: strconv.Itoa(n.kind)}
		r.ResourceNamesSubscribe = []string{"*"}
	}
	_ = n.stream.Send(r) // Recv returns the reason
}

// hold holds a response against what the control plane said: only health may differ, and
// health checks are gone of checked clusters for good, once hdsd has taken these over.
func (n *relayedNode) hold(r *discoveryv3.DeltaDiscoveryResponse) {
	if n.said == nil {
		return
	}
	now := time.Now()
	for _, one := range r.GetResources() {
		want, got := n.said[r.GetTypeUrl()][one.GetName()], one.GetResource().GetValue()
		var err error
		switch r.GetTypeUrl() {
		case resourcev3.ClusterType:
			if n.relieved[one.GetName()] || isChecked(one.GetName()) && !bytes.Equal(got, want) {
				want, err = publish.OverlayCluster(want, true, func(publish.Key, health.Status) (health.Status, bool) { return 0, false })
				n.relieve(one.GetName())
			}
		case resourcev3.EndpointType:
			var statuses []corev3.HealthStatus
			want, statuses, err = withHealthOf(want, got)
			n.seen(one.GetName(), now, statuses)
		}
		if err != nil || !bytes.Equal(got, want) {
			n.t.Errorf("%s: %s came as %x, %v, want %x", n.id, one.GetName(), got, err, want)
		}
	}
}

// relieve notes that the node need not check a cluster any more.
func (n *relayedNode) relieve(cluster string) {
	if n.relieved == nil {
		n.relieved = map[string]bool{}
	}
	n.relieved[cluster] = true
	n.unchecked.Store(int32(len(n.relieved)))
}

// isChecked reports whether a cluster has health checks, given its name.
func isChecked(cluster string) bool {
	number, _ := strconv.Atoi(cluster[len(cluster)-4:])
	return !unchecked(number)
}

// withHealthOf puts the health of one encoded assignment into another.
func withHealthOf(said, got []byte) ([]byte, []corev3.HealthStatus, error) {
	a := &endpointv3.ClusterLoadAssignment{}
	if err := proto.Unmarshal(got, a); err != nil {
		return nil, nil, err
	}
	var statuses []corev3.HealthStatus
	for _, group := range a.GetEndpoints() {
		statuses = append(statuses, group.GetLbEndpoints()[0].GetHealthStatus())
	}
	i := -1
	want, err := publish.OverlayAssignment(said, func(publish.Key, health.Status) (health.Status, bool) {
		i++
		return health.Status(statuses[i]), true
	})
	return want, statuses, err
}

// givenBack is how long hdsd is watched until it has given back the memory that the start took.
const givenBack = time.Minute

// TestRelayedBytes: what many nodes of several kinds get through the relay is, byte for
// byte, what the control plane said to their kind, but for health; and flips reach all.
// HDSD_SCALE=full has 1,000 nodes of 20 kinds and 1,000 clusters: give it an HDSD_BINARY that
// was built without -race, and a machine that has nothing else to do.
func TestRelayedBytes(t *testing.T) {
	nodes, kinds, count := 40, 5, 50
	if full() {
		nodes, kinds, count = 1000, 20, 1000
	}
	w := newWorld(count, 2)
	p := newKindsPlane(t, w, kinds)
	s := simulate(t, w, 3, 3, time.Second, "")
	if path := os.Getenv("HDSD_BINARY"); path != "" {
		s.Binary = path
	}
	s.relayTo(p)
	s.Start()
	s.connect()
	before := usageOf(t, s.PID())

	var mu sync.Mutex
	flipped := map[string]map[int]time.Time{} // by assignment and node
	ctx, cancel := context.WithCancel(t.Context())
	all := make([]*relayedNode, nodes)
	for i := range all {
		all[i] = &relayedNode{t: t, kind: i % kinds, id: fmt.Sprintf("node-%04d", i), said: p.said[i%kinds], synced: make(chan struct{}), ended: make(chan struct{})}
		all[i].seen = func(name string, at time.Time, statuses []corev3.HealthStatus) {
			mu.Lock()
			defer mu.Unlock()
			if statuses[0] == corev3.HealthStatus_UNHEALTHY {
				if flipped[name] == nil {
					flipped[name] = map[int]time.Time{}
				}
				flipped[name][i] = at
			}
		}
	}
	t.Cleanup(func() {
		cancel()
		for _, n := range all {
			<-n.ended
		}
	})
	plain := throughProxy(t, p, nodes)
	direct := startOf(t, p.address, 0)
	first := startOf(t, s.GRPC, 0)
	for _, n := range all {
		go n.run(ctx, s.GRPC)
	}
	var starts []time.Duration
	for _, n := range all {
		<-n.synced
		starts = append(starts, n.started)
	}
	if t.Failed() {
		t.FailNow()
	}
	s.until("verdicts", slowly(func() bool {
		return s.Clusters()[clusterName(0)].Healthy == 2 && s.Clusters()[clusterName(count-2)].Healthy == 2
	}))
	s.until("data planes to check nothing any more", func() bool {
		return !slices.ContainsFunc(all, func(n *relayedNode) bool { return int(n.unchecked.Load()) < count-count/10 })
	})
	after := usageOf(t, s.PID())
	known := startOf(t, s.GRPC, 0)

	var delays []time.Duration
	for i := range 9 {
		cluster := clusterName(i)
		w.flip(i * 2)
		s.until("the flip", func() bool { mu.Lock(); defer mu.Unlock(); return len(flipped[cluster]) == nodes })
		for _, transition := range s.Transitions(cluster) {
			decided, err := time.Parse(time.RFC3339Nano, transition.Time)
			if err != nil {
				t.Fatal(err)
			}
			if transition.To == "UNHEALTHY" {
				for _, at := range flipped[cluster] {
					delays = append(delays, at.Sub(decided))
				}
			}
		}
	}
	stays := usageOf(t, s.PID())
	for end := time.Now().Add(givenBack); full() && time.Now().Before(end); time.Sleep(time.Second) {
		stays = usageOf(t, s.PID())
	}
	slices.Sort(starts)
	slices.Sort(delays)
	t.Logf("%d nodes of %d kinds, %d clusters of 2 endpoints; load %.1f", nodes, kinds, count, load(t))
	t.Logf("first listener: %v without hdsd, %v through it for the first node, %v for one more; all nodes at once: p50 %v, last %v",
		direct, first, known, starts[len(starts)/2], starts[len(starts)-1])
	t.Logf("verdict to node: p50 %v, p99 %v", delays[len(delays)/2], delays[len(delays)*99/100])
	t.Logf("a node costs %d kB when all have started, %d kB later, and %v of processor time until all is quiet; at a plain TCP proxy %d kB and %v",
		(after.anonymous-before.anonymous)/nodes/1000, (stays.anonymous-before.anonymous)/nodes/1000, (after.processor-before.processor)/time.Duration(nodes), plain.anonymous/nodes/1000, plain.processor/time.Duration(nodes))
}

// throughProxy has nodes take everything from the control plane through a plain TCP proxy, and
// returns what they have cost it.
func throughProxy(t *testing.T, p *kindsPlane, nodes int) usage {
	t.Helper()
	address, pid := startProxy(t, p.address)
	before := usageOf(t, pid)
	ctx, cancel := context.WithCancel(t.Context())
	all := make([]*relayedNode, nodes)
	for i := range all {
		all[i] = &relayedNode{t: t, kind: i % len(p.said), id: fmt.Sprintf("plain-%04d", i), synced: make(chan struct{}), ended: make(chan struct{})}
		go all[i].run(ctx, address)
	}
	for _, n := range all {
		<-n.synced
	}
	after := usageOf(t, pid)
	cancel()
	for _, n := range all {
		<-n.ended
	}
	return usage{processor: after.processor - before.processor, anonymous: after.anonymous - before.anonymous}
}

// relayTo makes the coordinator a relay to a control plane, without sources.
func (s *simulation) relayTo(p *kindsPlane) {
	s.t.Helper()
	config, err := os.ReadFile(filepath.Join(s.Dir, "hdsd.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	only := []byte("sources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n")
	relay := fmt.Appendf(nil, "relay: {upstream: {api_config_source: {api_type: AGGREGATED_DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: %q, stat_prefix: x}}]}}}\n", p.address)
	if !bytes.Contains(config, only) {
		s.t.Fatalf("the configuration has other sources:\n%s", config)
	}
	s.put("hdsd.yaml", bytes.ReplaceAll(config, only, relay))
}
