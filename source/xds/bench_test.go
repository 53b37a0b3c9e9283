package xds

import (
	"fmt"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"hdsd/envoy/rules"
)

// BenchmarkChange takes one change of 10,000 clusters with ten endpoints each,
// and makes the set.
func BenchmarkChange(b *testing.B) {
	s, err := New(Options{Name: "upstream", ConfigSource: ways["AGGREGATED_DELTA_GRPC"]})
	if err != nil {
		b.Fatal(err)
	}
	first, second := &update{}, &update{}
	hosts := make([]string, 10)
	for c := range 10_000 {
		for h := range hosts {
			hosts[h] = fmt.Sprintf("10.%d.%d.%d", c/250, c%250, h)
		}
		name := fmt.Sprintf("cluster-%05d", c)
		first.items = append(first.items, item{name: name, body: pack(eds(name, ""))})
		second.items = append(second.items, item{name: name, body: pack(endpoints(name, hosts...))})
	}
	s.accept(s.clusters, first)
	s.accept(s.assignments, second)
	changes := []*update{
		{items: []item{{name: "cluster-05000", body: pack(endpoints("cluster-05000", "10.0.0.1"))}}},
		{items: []item{{name: "cluster-05000", body: pack(endpoints("cluster-05000", "10.0.0.2"))}}},
	}
	i := 0
	for b.Loop() {
		s.accept(s.assignments, changes[i%2])
		if set := s.build(time.Now()); len(set.Clusters) != 10_000 {
			b.Fatal(len(set.Clusters))
		}
		i++
	}
}

// BenchmarkRenewal renews the lease of one of many assignments, and looks for what is due. It
// costs the same however many there are.
func BenchmarkRenewal(b *testing.B) {
	for _, count := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			s, err := New(Options{Name: "upstream", ConfigSource: ways["AGGREGATED_DELTA_GRPC"]})
			if err != nil {
				b.Fatal(err)
			}
			clusters, assignments := &update{}, &update{}
			for c := range count {
				name := fmt.Sprintf("cluster-%06d", c)
				clusters.items = append(clusters.items, item{name: name, body: pack(eds(name, ""))})
				assignments.items = append(assignments.items, item{name: name, body: pack(leased(name, "10.0.0.1"))})
			}
			s.accept(s.clusters, clusters)
			s.accept(s.assignments, assignments)
			d := newDelivery(s, nil)
			now := time.Now()
			d.next(now)
			renewal := &update{items: assignments.items[count/2 : count/2+1]}
			for b.Loop() {
				s.accept(s.assignments, renewal)
				if _, next := d.next(now); next.IsZero() {
					b.Fatal("no lease ends")
				}
			}
		})
	}
}

// BenchmarkUpstream changes one of 10,000 assignments on a management server,
// over a socket, until that is handed on.
func BenchmarkUpstream(b *testing.B) {
	peers := make(chan *deltaPeer, 1)
	target, stop := real(b, "tcp", "127.0.0.1:0", func(p *deltaPeer) { peers <- p })
	defer stop()
	from := clone(deltaSource)
	from.GetApiConfigSource().GetGrpcServices()[0].GetGoogleGrpc().TargetUri = target
	s, err := New(Options{Name: "upstream", ConfigSource: from})
	if err != nil {
		b.Fatal(err)
	}
	r := newNetwork(b).start(s)
	defer r.stop()
	p := <-peers
	clusters, assignments := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: rules.Cluster}, &discoveryv3.DeltaDiscoveryResponse{TypeUrl: rules.Assignment}
	for c := range 10_000 {
		name := fmt.Sprintf("cluster-%05d", c)
		clusters.Resources = append(clusters.Resources, wrap(name, "1", eds(name, "")))
		assignments.Resources = append(assignments.Resources, wrap(name, "1", endpoints(name, "10.0.0.1", "10.0.0.2", "10.0.0.3")))
	}
	p.send(clusters)
	for request := range p.requests {
		if len(request.GetResourceNamesSubscribe()) == len(assignments.GetResources()) {
			break
		}
	}
	p.send(assignments)
	<-r.sets
	i := 0
	for b.Loop() {
		b.StopTimer()
		time.Sleep(2 * deliveryPause)
		b.StartTimer()
		i++
		p.send(change(rules.Assignment, "n", wrap("cluster-05000", fmt.Sprint(i), endpoints("cluster-05000", fmt.Sprint(i)))))
		<-r.sets
	}
}
