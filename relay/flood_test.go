package relay

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/fields"
	"hdsd/health"
	"hdsd/peer/limit"
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

// TestClaimsMakeLittleGarbage: none for each of them, which verdicts would wait for.
func TestClaimsMakeLittleGarbage(t *testing.T) {
	request, s := claimRequest(t, 10_000), benchServer()
	if count := testing.AllocsPerRun(5, func() {
		st := &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
		if _, err := st.sendRequest(request); err != nil {
			t.Fatal(err)
		}
		st.close()
	}); count > 100 {
		t.Errorf("a request with 10,000 claims allocates %.0f times", count)
	}
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

// TestClaimsWithoutRoomTakeNoMemory: a short entry would take several times its size in hdsd, and in
// the request that the control plane gets. That one still says which resources the client has, and
// none of their versions.
func TestClaimsWithoutRoomTakeNoMemory(t *testing.T) {
	const count = 1 << 20
	entry := fields.AppendBytes(nil, 5, []byte("\x0a\x01a")) // initial_resource_versions: its name is "a"
	request := bytes.Repeat(entry, count)
	s := benchServer()
	s.options.Names = limit.NewPool(limit.Limit{Total: 100})
	st := &stream{server: s, caller: "flood", method: method{delta: true, typeURL: clusters.typeURL()}, nodeID: "n", wake: make(chan struct{}, 1)}
	var sent []byte
	var err error
	taken := allocated(func() { sent, err = st.sendRequest(request) })
	if err != nil {
		t.Fatal(err)
	}
	if taken > 3*uint64(len(request)) {
		t.Errorf("a request of %d bytes takes %d", len(request), taken)
	}
	if len(sent) > len(request)+100 || bytes.Count(sent, entry) != count {
		t.Errorf("a request of %d bytes becomes one of %d bytes with %d claims", len(request), len(sent), bytes.Count(sent, entry))
	}
}

// TestDoubtsCostLittle: after a refusal of many clusters with another check, each goes out alone, and
// costs the same, however many others wait.
func TestDoubtsCostLittle(t *testing.T) {
	const names, pushes = 10_000, 20
	s := benchServer()
	st := &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
	answer := func(nonce string, refused bool) {
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters.typeURL(), ResponseNonce: nonce}
		if refused {
			r.ErrorDetail = &status.Status{Code: 13}
		}
		wire, err := proto.Marshal(r)
		if err == nil {
			_, err = st.sendRequest(wire)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range []string{"/", "/other"} {
		if _, err := st.respond(arrival{typeURL: clusters.typeURL(), wire: clusterResponseWith(t, clusters, names, path, fmt.Sprint(i+1))}); err != nil {
			t.Fatal(err)
		}
		answer(fmt.Sprint(i+1), path != "/")
	}
	pushed := map[string]bool{}
	bytes := allocated(func() {
		for range pushes {
			r := &discoveryv3.DeltaDiscoveryResponse{}
			if err := proto.Unmarshal(st.nextPush(), r); err != nil {
				t.Fatal(err)
			}
			if len(r.GetResources()) != 1 {
				t.Fatalf("%d are sent together", len(r.GetResources()))
			}
			pushed[r.GetResources()[0].GetName()] = true
			answer(r.GetNonce(), false)
		}
	}) / pushes
	if len(pushed) != pushes {
		t.Errorf("in %d responses, there are %d clusters", pushes, len(pushed))
	}
	if bytes > 50_000 {
		t.Errorf("a response with one of %d clusters in doubt takes %d bytes", names, bytes)
	}
}
