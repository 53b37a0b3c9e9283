package relay

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// clusterResponse is a delta response of a control plane with so many clusters, or their assignments.
func clusterResponse(b testing.TB, k kind, count int) []byte {
	b.Helper()
	return clusterResponseWith(b, k, count, "/", "1")
}

// clusterResponseWith is the same, with a path that clusters are checked by, and a nonce, which is the version, too.
func clusterResponseWith(b testing.TB, k kind, count int, path, nonce string) []byte {
	b.Helper()
	response := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: k.typeURL(), Nonce: nonce}
	for i := range count {
		name := fmt.Sprintf("cluster-%04d", i)
		c := checkedCluster(clusterv3.Cluster_EDS, path)
		c.Name = name
		a := assignmentOf(fmt.Sprintf("10.0.%d.%d", i>>8, i&255), fmt.Sprintf("10.1.%d.%d", i>>8, i&255))
		a.ClusterName = name
		m := proto.Message(c)
		if k == assignments {
			m = a
		}
		packed, err := anypb.New(m)
		if err != nil {
			b.Fatal(err)
		}
		response.Resources = append(response.Resources, &discoveryv3.Resource{Name: name, Version: nonce, Resource: packed})
	}
	wire, err := proto.Marshal(response)
	if err != nil {
		b.Fatal(err)
	}
	return wire
}

// benchServer has no control plane, and a core that knows everything at once.
func benchServer() *Server {
	s := NewServer(Options{
		Health: true, Keep: 1e9, MaxClusterEndpoints: 1000, MaxEndpoints: 1 << 20, Checks: func(*clusterv3.Cluster, uint64) bool { return true },
	})
	s.stock.applied = 1 << 60
	return s
}

// idleStream has no goroutines: a test does what they would do.
func idleStream(s *Server, m method) *stream {
	return &stream{server: s, method: m, nodeID: "n", wake: make(chan struct{}, 1)}
}

// BenchmarkResponse is what a response with 1,000 resources costs: of a control plane of which
// hdsd knows nothing (first), and to one more client of a kind that hdsd knows, its
// acknowledgement included.
func BenchmarkResponse(b *testing.B) {
	for _, k := range []kind{clusters, assignments} {
		wire := clusterResponse(b, k, 1000)
		pass := func(b *testing.B, s *Server, id string) *stream {
			st := &stream{server: s, method: method{delta: true}, nodeID: id, wake: make(chan struct{}, 1)}
			if _, err := st.respond(arrival{typeURL: k.typeURL(), wire: wire}); err != nil {
				b.Fatal(err)
			}
			ack, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: k.typeURL(), ResponseNonce: "1"})
			if err == nil {
				_, err = st.sendRequest(ack)
			}
			if err != nil {
				b.Fatal(err)
			}
			return st
		}
		b.Run(k.typeURL()[len("type.googleapis.com/envoy.config."):]+"/first", func(b *testing.B) {
			b.ReportAllocs()
			processor(b)
			for b.Loop() {
				pass(b, benchServer(), "n")
			}
		})
		b.Run(k.typeURL()[len("type.googleapis.com/envoy.config."):]+"/known", func(b *testing.B) {
			s := benchServer()
			streams := []*stream{pass(b, s, "n")}
			b.ReportAllocs()
			processor(b)
			for b.Loop() {
				streams = append(streams, pass(b, s, "n"))
				if len(streams) > 100 {
					streams[rand.N(100)].close()
					streams = streams[:100]
				}
			}
		})
	}
}

// BenchmarkClaims is what a request costs whose client says that it has 100,000 clusters, of which
// hdsd knows none.
func BenchmarkClaims(b *testing.B) {
	request, s := claimRequest(b, 100_000), benchServer()
	b.ReportAllocs()
	processor(b)
	for b.Loop() {
		st := &stream{server: s, method: method{delta: true}, nodeID: "n", wake: make(chan struct{}, 1)}
		if _, err := st.sendRequest(request); err != nil {
			b.Fatal(err)
		}
		st.close()
	}
}

// processor has a benchmark report its processor time, which other work on the machine does not
// change as much as the time.
func processor(b *testing.B) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	b.Cleanup(func() { b.ReportMetric(float64((used()-start).Microseconds())/float64(b.N), "cpu-us/op") })
}
