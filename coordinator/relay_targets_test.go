package coordinator_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/test/proxyless"
)

// target opens a stream for one target of a gRPC client: it asks for one cluster by name.
func (s *site) target(delta bool, before *client, name string) *client {
	s.t.Helper()
	c := s.newClient(delta, "shop")
	if before != nil {
		before.mu.Lock()
		for typeURL, all := range before.resources {
			c.resources[typeURL], c.versions[typeURL] = maps.Clone(all), maps.Clone(before.versions[typeURL])
		}
		before.mu.Unlock()
		if state, ok := c.talker.(*stateTalker); ok {
			maps.Copy(state.version, before.talker.(*stateTalker).version)
		}
	}
	c.talker.ask(resource.ClusterType, []string{name}, c.versions[resource.ClusterType])
	c.talker.ask(resource.EndpointType, []string{name}, c.versions[resource.EndpointType])
	go c.run()
	return c
}

// strays lists the clusters that a stream was sent without one that it has.
func (c *client) strays(name string) (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, delta := c.talker.(*deltaTalker)
	for _, h := range c.responses {
		if h.typeURL != resource.ClusterType || h.resources[name] != nil && len(h.resources) == 1 || delta && len(h.resources)+len(h.removed) == 0 {
			continue
		}
		all = append(all, fmt.Sprint(slices.Sorted(maps.Keys(h.resources)), h.removed))
	}
	return all
}

// TestStreamsOfOneNode covers a gRPC client with a stream for each of its targets, all with one node. Each
// stream gets its own resources, also while the control plane is away.
func TestStreamsOfOneNode(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		names := []string{"a", "b", "c"}
		address, answers := upstream(t)
		m := newManagement(t)
		m.cache = cache.NewSnapshotCache(false, everyone{}, nil) // answers those who ask for some of all
		m.come()
		var assignments []types.Resource
		for _, name := range names {
			assignments = append(assignments, endpoints(name, corev3.HealthStatus_UNKNOWN, address))
		}
		m.says(byEDS(names...), assignments...)
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		s.checker("c1")
		streams := map[string]*client{}
		for _, name := range names {
			streams[name] = s.target(delta, nil, name)
			s.eventually("health of "+name, func() bool { return streams[name].health(name) == "HEALTHY" && streams[name].cluster(name) != nil })
		}
		again := func(order ...string) {
			t.Helper()
			for _, name := range order {
				<-streams[name].ended
				streams[name] = s.target(delta, streams[name], name)
			}
			s.eventually("the streams", func() bool { return s.scrape().sum("hdsd_relay_streams") == 3 })
		}
		follow := func(code int32, want string) {
			t.Helper()
			answers.Store(code)
			for _, name := range names {
				s.eventually(want+" in "+name, func() bool { return streams[name].health(name) == want && streams[name].cluster(name) != nil })
				if all := streams[name].strays(name); len(all) > 0 {
					t.Errorf("the stream for %s was sent %v", name, all)
				}
			}
		}
		m.leave()
		again("b", "c", "a")
		follow(fails, "UNHEALTHY")
		fresh := s.target(delta, nil, "a") // the client has started again
		s.eventually("what it had", func() bool { return fresh.health("a") == "UNHEALTHY" && fresh.cluster("a") != nil })
		unknown := s.target(delta, nil, "d") // another target
		all := s.client(delta, "shop")       // and a stream that asks for all there is
		follow(200, "HEALTHY")
		for name, c := range map[string]*client{"d": unknown, "everything": all} {
			if strays := c.strays(name); len(strays) > 0 {
				t.Errorf("the stream for %s was sent %v", name, strays)
			}
			c.stop()
		}
		if strays := fresh.strays("a"); len(strays) > 0 {
			t.Errorf("the fresh stream for a was sent %v", strays)
		}
		fresh.stop()
		m.come()
		again("a", "c", "b")
		follow(fails, "UNHEALTHY")
		streams["b"].stop() // the control plane is there
		again("b")
		follow(200, "HEALTHY")
	})
}

// TestGRPCTargetsThroughOutage covers the xDS client of gRPC with three targets, and a stream for each. No
// call fails during an outage of the control plane and after it.
func TestGRPCTargetsThroughOutage(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	m := newManagement(t)
	m.cache = cache.NewSnapshotCache(false, everyone{}, nil)
	m.come()
	m.extra = map[resource.Type][]types.Resource{}
	var clusters, assignments []types.Resource
	backends := map[string][]*proxyless.Backend{}
	for _, name := range names {
		backends[name] = []*proxyless.Backend{proxyless.NewBackend(t), proxyless.NewBackend(t)}
		m.extra[resource.ListenerType] = append(m.extra[resource.ListenerType], listener(t, "to-"+name, name))
		cluster := proto.CloneOf(byEDS(name)[0].(*clusterv3.Cluster))
		cluster.HealthChecks[0].HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
		cluster.HealthChecks[0].Timeout = durationpb.New(5 * time.Second) // for a busy machine: no backend hangs
		clusters = append(clusters, cluster)
		assignment := endpoints(name, corev3.HealthStatus_UNKNOWN, backends[name][0].Address, backends[name][1].Address).(*endpointv3.ClusterLoadAssignment)
		group := assignment.GetEndpoints()[0] // gRPC refuses one without a locality or a weight
		group.Locality, group.LoadBalancingWeight = &corev3.Locality{Zone: "a"}, wrapperspb.UInt32(1)
		assignments = append(assignments, assignment)
	}
	m.says(clusters, assignments...)
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.checker("c1")
	bootstrap := proxyless.Bootstrap{Node: proxyless.Node{ID: "shop"}, Servers: []proxyless.Server{{Address: s.dial().Target()}}}
	clients := map[string]*proxyless.Client{}
	for _, name := range names {
		clients[name] = proxyless.NewClient(t, "xds:///to-"+name, bootstrap)
		s.follows(clients[name], backends[name][0], backends[name][1])
	}
	ended := make(chan struct{})
	var calling sync.WaitGroup
	for _, name := range names {
		calling.Go(func() { clients[name].KeepCalling(ended) })
	}
	streams := func(metric string, want float64) {
		t.Helper()
		s.eventually(metric, func() bool { return s.scrape().sum(metric) == want })
	}
	streams("hdsd_relay_streams", 3)
	m.leave()
	streams("hdsd_relay_streams_from_memory", 3)
	for _, name := range names {
		s.follows(clients[name], backends[name][0], backends[name][1])
	}
	m.come()
	streams("hdsd_relay_streams_from_memory", 0)
	streams("hdsd_relay_streams", 3)
	for _, name := range names {
		s.follows(clients[name], backends[name][0], backends[name][1])
	}
	close(ended)
	calling.Wait()
}
