package relay

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
	"hdsd/publish"
)

// claimRequest is a request of a client that says it has so many clusters.
func claimRequest(t testing.TB, names int) []byte {
	t.Helper()
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), InitialResourceVersions: map[string]string{}}
	for i := range names {
		r.InitialResourceVersions[fmt.Sprintf("made-up-cluster-%06d", i)] = "1"
	}
	wire, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// BenchmarkVerdictBesideAFlood: how long a verdict takes to the response that an honest data plane
// is sent, and that one's acknowledgement after it, while another client opens streams that say
// they have 100,000 clusters.
func BenchmarkVerdictBesideAFlood(b *testing.B) {
	flood := claimRequest(b, 100_000)
	for _, streams := range []int{0, 200} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			s := benchServer()
			web := publish.Assignment{Name: "cluster-0000", IDs: [][][]health.EndpointID{{{0}, {1}}}}
			a := assignmentOf("10.0.0.0", "10.1.0.0")
			a.ClusterName = web.Name
			web.Wire, _ = proto.Marshal(a) // it is valid
			s.book.Update(publish.Update{Assignments: []publish.Assignment{web}})
			st := &stream{server: s, caller: "honest", method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
			if _, err := st.respond(arrival{typeURL: assignments.typeURL(), wire: clusterResponse(b, assignments, 1)}); err != nil {
				b.Fatal(err)
			}
			acknowledge := func(nonce string) {
				wire, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: assignments.typeURL(), ResponseNonce: nonce})
				if err == nil {
					_, err = st.sendRequest(wire)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			acknowledge("1")
			var flooding sync.WaitGroup
			var done atomic.Bool
			begun := make(chan struct{}, streams)
			for range streams {
				flooding.Go(func() {
					for !done.Load() {
						flooder := &stream{server: s, caller: "flood", method: method{delta: true}, nodeID: "f", wake: make(chan struct{}, 1)}
						if _, err := flooder.sendRequest(flood); err != nil {
							b.Error(err)
						}
						flooder.close()
						select {
						case begun <- struct{}{}:
						default:
						}
					}
				})
			}
			if streams > 0 {
				<-begun
			}
			var pushes, answers []time.Duration
			for b.Loop() {
				status := health.Unhealthy
				if len(pushes)%2 == 0 {
					status = health.Healthy
				}
				begin := time.Now()
				s.book.SetHealth([]publish.Health{{ID: 0, Status: status}})
				wire := st.nextPush()
				if wire == nil {
					b.Fatal("nothing is pushed")
				}
				pushes = append(pushes, time.Since(begin))
				r := &discoveryv3.DeltaDiscoveryResponse{}
				if err := proto.Unmarshal(wire, r); err != nil {
					b.Fatal(err)
				}
				begin = time.Now()
				acknowledge(r.GetNonce())
				answers = append(answers, time.Since(begin))
			}
			done.Store(true)
			flooding.Wait()
			for name, durations := range map[string][]time.Duration{"push": pushes, "ack": answers} {
				slices.Sort(durations)
				b.ReportMetric(float64(durations[len(durations)/2].Microseconds()), name+"-p50-us")
				b.ReportMetric(float64(durations[len(durations)*99/100].Microseconds()), name+"-p99-us")
			}
		})
	}
}
