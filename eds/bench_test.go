package eds

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcpstream "github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/peer/access"
	"hdsd/publish"
)

func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%04d", i)
	}
	return names
}

func manyAssignments(names []string, endpoints int) []publish.Assignment {
	all := make([]publish.Assignment, len(names))
	for i, name := range names {
		all[i] = assignment(name, health.EndpointID(i*endpoints), endpoints)
	}
	return all
}

// BenchmarkFlip flips one endpoint of 1,000 assignments of 100 and makes the response
// of every watcher. Each watches all assignments by name. It does not write the
// responses. Members share a group, and the others do not. LinearCache has fewer watchers, because it takes longer.
func BenchmarkFlip(b *testing.B) {
	names := manyNames(1000)
	b.Run("hdsd/members=500", func(b *testing.B) { benchmarkFlip(b, "key", names, 500) })
	b.Run("hdsd/watchers=500", func(b *testing.B) { benchmarkFlip(b, "", names, 500) })
	b.Run("hdsd/watchers=20", func(b *testing.B) { benchmarkFlip(b, "", names, 20) })
	b.Run("linear/watchers=20", func(b *testing.B) { benchmarkLinear(b, names, 20) })
}

func benchmarkFlip(b *testing.B, key string, names []string, watchers int) {
	s := NewServer(Options{Identifier: "hdsd-1"})
	s.Update(publish.Update{Assignments: manyAssignments(names, 100)})
	subs := make([]*subscription, watchers)
	for i := range subs {
		st := &stream{server: s, permitted: access.AllClusters(), id: uint64(i), delta: true, wake: make(chan struct{}, 1)}
		subs[i] = newSubscription(st, s.published.assignments)
		if err := subs[i].requests.process(&request{key: key, names: names}); err != nil {
			b.Fatal(err)
		}
		for respond(subs[i]) > 0 {
		}
	}
	var update, responses time.Duration
	n := 0
	for b.Loop() {
		n++
		start := time.Now()
		s.setHealth(health.EndpointID(n%100_000), health.Status(1+n/100_000%2))
		flipped := time.Now()
		for _, u := range subs {
			if respond(u) == 0 {
				b.Fatal("nothing was sent")
			}
		}
		update += flipped.Sub(start)
		responses += time.Since(flipped)
	}
	report(b, update, responses, n, watchers)
}

// respond makes and acknowledges one response.
func respond(u *subscription) int {
	r := u.next(u.stream.nonce, 1<<20)
	if r == nil {
		return 0
	}
	parts, _ := r.MarshalWire()
	accept(u)
	return len(parts)
}

// accept acknowledges the outstanding response.
func accept(u *subscription) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.delivery.answer(u.delivery.nonce, nil, time.Time{}, 0)
	u.interest.underWay = nil
}

func report(b *testing.B, update, responses time.Duration, n, watchers int) {
	b.ReportMetric(float64(update.Nanoseconds())/float64(n), "ns/update")
	b.ReportMetric(float64(responses.Nanoseconds())/float64(n*watchers), "ns/response")
}

func benchmarkLinear(b *testing.B, names []string, watchers int) {
	target, _ := newTheirs(b.Context())
	messages := manyAssignments(names, 100)
	for _, a := range messages {
		if err := target.cache.UpdateResource(a.Name, a.Message()); err != nil {
			b.Fatal(err)
		}
	}
	subs := make([]gcpstream.Subscription, watchers)
	channels := make([]chan cache.DeltaResponse, watchers)
	request := &cache.DeltaRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesSubscribe: names}
	open := func(i int) {
		if _, err := target.cache.CreateDeltaWatch(request, subs[i], channels[i]); err != nil {
			b.Fatal(err)
		}
	}
	take := func(i int) {
		r := <-channels[i]
		m, err := r.GetDeltaDiscoveryResponse()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := proto.Marshal(m); err != nil {
			b.Fatal(err)
		}
		subs[i].SetReturnedResources(r.GetNextVersionMap())
		open(i) // what the ACK does
	}
	for i := range subs {
		subs[i] = gcpstream.NewDeltaSubscription(names, nil, nil, true)
		channels[i] = make(chan cache.DeltaResponse, 2)
		open(i)
		take(i)
	}
	var update, responses time.Duration
	n := 0
	for b.Loop() {
		n++
		m := messages[n%len(names)].Message()
		m.GetEndpoints()[0].GetLbEndpoints()[0].HealthStatus = corev3.HealthStatus(1 + n%2)
		start := time.Now()
		if err := target.cache.UpdateResource(m.GetClusterName(), m); err != nil {
			b.Fatal(err)
		}
		flipped := time.Now()
		for i := range subs {
			take(i)
		}
		update += flipped.Sub(start)
		responses += time.Since(flipped)
	}
	report(b, update, responses, n, watchers)
}

// BenchmarkFlipOverGRPC flips one endpoint and waits until the last of 200 delta ADS
// clients has it. Each has its own loopback connection and watches 1,000 assignments of
// 20 endpoints by name.
func BenchmarkFlipOverGRPC(b *testing.B) {
	names := manyNames(1000)
	messages := manyAssignments(names, 20)
	b.Run("hdsd", func(b *testing.B) {
		s := NewServer(Options{Identifier: "hdsd-1"})
		defer s.Close()
		s.Update(publish.Update{Assignments: messages})
		benchmarkClients(b, s.Register, names, func(n int) {
			s.setHealth(health.EndpointID(n%len(names)*20), health.Status(1+n%2))
		})
	})
	b.Run("linear", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		target, register := newTheirs(ctx)
		for _, a := range messages {
			if err := target.cache.UpdateResource(a.Name, a.Message()); err != nil {
				b.Fatal(err)
			}
		}
		benchmarkClients(b, register, names, func(n int) {
			m := messages[n%len(names)].Message()
			m.GetEndpoints()[0].GetLbEndpoints()[0].HealthStatus = corev3.HealthStatus(1 + n%2)
			if err := target.cache.UpdateResource(m.GetClusterName(), m); err != nil {
				b.Error(err)
			}
		})
	})
}

func benchmarkClients(b *testing.B, register func(grpc.ServiceRegistrar), names []string, flip func(int)) {
	const clients = 200
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	transport := grpc.NewServer(wire.ServerOption(), grpc.MaxConcurrentStreams(1000))
	register(transport)
	var running sync.WaitGroup
	running.Go(func() { transport.Serve(listener) })
	arrived := make(chan int, clients*len(names))
	for range clients {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec()), grpc.MaxCallRecvMsgSize(64<<20)))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		running.Go(func() { benchmarkClient(b, conn, names, arrived) })
	}
	for range clients * len(names) {
		<-arrived
	}
	n := 0
	for b.Loop() {
		n++
		flip(n)
		for range clients {
			<-arrived
		}
	}
	b.StopTimer()
	transport.Stop()
	running.Wait()
}

// benchmarkClient acknowledges everything and counts every resource that arrives,
// without decoding it.
func benchmarkClient(b *testing.B, conn *grpc.ClientConn, names []string, arrived chan<- int) {
	s, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName)
	if err != nil {
		b.Error(err)
		return
	}
	request := subscribe(resourcev3.EndpointType, names...)
	var m wire.Bytes
	for {
		if s.SendMsg(request) != nil || s.RecvMsg(&m) != nil {
			return // the server was stopped
		}
		nonce := ""
		for rest := []byte(m); len(rest) > 0; {
			f, err := fields.Next(rest)
			if err != nil {
				b.Error(err)
				return
			}
			rest = rest[len(f.Raw):]
			switch {
			case f.Is(fields.ResponseResources):
				arrived <- 1
			case f.Is(fields.ResponseNonce):
				nonce = string(f.Value)
			}
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResponseNonce: nonce}
	}
}

// BenchmarkEncodeFlip makes the next frame of an assignment of 5,762 endpoints.
func BenchmarkEncodeFlip(b *testing.B) {
	s := NewServer(Options{})
	a := assignment("large", 0, 5762)
	s.Update(publish.Update{Assignments: []publish.Assignment{a}})
	slot := s.published.assignments.slots["large"]
	b.Run("splice", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			s.setHealth(7, health.Status(1+n%2))
			slot.current()
		}
	})
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		m := a.Message()
		for n := 0; b.Loop(); n++ {
			m.GetEndpoints()[0].GetLbEndpoints()[7].HealthStatus = corev3.HealthStatus(1 + n%2)
			if _, err := deterministic.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkUnasked counts the missing assignments of nodes that request assignments on another stream than
// clusters. The time for each node does not grow with their number.
func BenchmarkUnasked(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := NewServer(Options{Identifier: "hdsd-1"})
			names := manyNames(10)
			var all []publish.Cluster
			for _, name := range names {
				all = append(all, clusters(name, "1")...)
			}
			s.Update(publish.Update{Clusters: all, Assignments: manyAssignments(names, 1)})
			start := time.Now()
			for i := range nodes {
				for kind, t := range []*table{s.published.clusters, s.published.assignments} {
					st := &stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1), nodeID: fmt.Sprintf("dp-%d", i)}
					u := newSubscription(st, t)
					if err := u.requests.process(&request{names: names}); err != nil {
						b.Fatal(err)
					}
					st.subs[kind] = u
					s.streams.add(st)
					for _, w := range u.interest.watches {
						w.take(w.current(), start)
					}
				}
			}
			for b.Loop() {
				s.unasked.count(start.Add(time.Hour))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
		})
	}
}
