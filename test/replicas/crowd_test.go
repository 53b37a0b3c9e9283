package replicas

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/internal/wire"
	wait "hdsd/test/envoy"
	"hdsd/test/etcd"
	"hdsd/test/scale"
)

// crowd is data planes that take one cluster, all from the first replica that takes them.
type crowd struct {
	lab     *lab
	servers []string
	cluster string
	present atomic.Int64 // data planes that have the health on their present stream
}

// member is one data plane, until ctx ends. Its next stream is to the next replica, from one on that differs.
func (c *crowd) member(ctx context.Context, n int) {
	for turn := 0; ctx.Err() == nil; turn++ {
		server := c.servers[0]
		if turn > 0 {
			server = c.servers[(n+turn)%len(c.servers)]
		}
		c.converse(ctx, fmt.Sprintf("crowd-%d", n), server)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *crowd) converse(ctx context.Context, id, server string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, hangUp, err := scale.Dial(ctx, server, discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		return
	}
	defer hangUp() //nolint:errcheck // the stream has ended
	present := false
	defer func() {
		if present {
			c.present.Add(-1)
		}
	}()
	request := &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: id}, TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: []string{c.cluster}}
	for stream.SendMsg(request) == nil {
		var message wire.Bytes
		if stream.RecvMsg(&message) != nil {
			return
		}
		var response discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(message, &response); err != nil {
			c.lab.t.Error(err)
			return
		}
		for _, r := range response.GetResources() {
			c.check(id, r)
			if !present {
				present = true
				c.present.Add(1)
			}
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: response.GetNonce()}
	}
}

// check looks for false health in an assignment: its endpoints never change.
func (c *crowd) check(id string, r *discoveryv3.Resource) {
	var assignment endpointv3.ClusterLoadAssignment
	if err := r.GetResource().UnmarshalTo(&assignment); err != nil {
		c.lab.t.Error(err)
		return
	}
	count := 0
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			endpoint, _ := c.lab.judge.world.Find(envoy.Address(e.GetEndpoint().GetAddress()))
			want := corev3.HealthStatus_HEALTHY
			if isSteadilyDown(endpoint) {
				want = corev3.HealthStatus_UNHEALTHY
			}
			if count++; e.GetHealthStatus() != want {
				c.lab.t.Errorf("%s gets endpoint %d as %v", id, endpoint, e.GetHealthStatus())
			}
		}
	}
	if count != steady {
		c.lab.t.Errorf("%s gets %d endpoints", id, count)
	}
}

// TestACrowdReconnects covers data planes of one replica, 5,000 with SOAK, which is killed: all are with the other two
// soon.
func TestACrowdReconnects(t *testing.T) {
	t.Parallel()
	l := newLab(t, etcd.StartCluster(t, 1, quickEtcd...), shortTTL)
	r := l.leader()
	size := int64(either(500, 5000))
	c := &crowd{lab: l, cluster: l.judge.world.Name(0), servers: []string{r.grpc}}
	for _, other := range l.replicas {
		if other != r {
			c.servers = append(c.servers, other.grpc)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var members sync.WaitGroup
	defer members.Wait()
	defer cancel()
	for n := range int(size) {
		members.Go(func() { c.member(ctx, n) })
	}
	all := func() bool { return c.present.Load() == size }
	wait.Eventually(t, patience, "all data planes", all)
	l.fault(fmt.Sprintf("kill -9 of the leader with %d data planes", size), func() {
		l.behind(r)
		begin := time.Now()
		r.Kill()
		wait.Eventually(t, patience, "fewer data planes", func() bool { return !all() })
		wait.Eventually(t, patience, "all data planes at two replicas", all)
		t.Logf("%d data planes have the health of other replicas %v after the kill", size, time.Since(begin).Round(time.Millisecond))
	}, r.start)
	l.finish()
}
