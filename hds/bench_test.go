package hds_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/specifier"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/internal/wire"
)

const benchEndpoints = 3000

// benchReports gives an assignment of 3,000 endpoints in 60 clusters, two reports on it that
// differ in one status, and a last one in which the first endpoint is down.
func benchReports(b *testing.B) (endpoints []checked, one, other, last []byte) {
	var entries []said
	for i := range benchEndpoints {
		name := fmt.Sprintf("cluster-%02d/zone-%d/10.0.%d.%d:8080", i/50, i/25%2, i>>8, i&255)
		endpoints = append(endpoints, checked{health.EndpointID(i), name})
		entries = append(entries, said{name, up, 200})
	}
	one = encode(b, report(entries...))
	entries[1500].status = down
	other = encode(b, report(entries...))
	entries[0].status = down
	return endpoints, one, other, encode(b, report(entries...))
}

func perEntry(b *testing.B, messages int) {
	b.ReportMetric(float64(messages)*benchEndpoints/b.Elapsed().Seconds()/1e6, "Mentries/s")
}

func BenchmarkRead(b *testing.B) {
	endpoints, one, other, _ := benchReports(b)
	run := func(name string, generally bool, first, second []byte) {
		b.Run(name, func(b *testing.B) {
			r := hds.Reader{Generally: generally}
			r.Assign(assignment(endpoints...))
			messages := [][]byte{first, second}
			for i := 0; b.Loop(); i++ {
				if _, _, _, err := r.Read(messages[i%2]); err != nil {
					b.Fatal(err)
				}
			}
			perEntry(b, b.N)
		})
	}
	run("unchanged", false, one, one)
	run("changed", false, one, other)
	run("changed-decoded", true, one, other)
}

// BenchmarkStream sends reports over a loopback connection, client and server
// in one process: to the server, unchanged and changing, to the floor (a codec
// that drops the bytes) and to what is usually written (proto.Unmarshal and a
// map by cluster and address).
func BenchmarkStream(b *testing.B) {
	endpoints, one, other, last := benchReports(b)
	b.Run("unchanged", func(b *testing.B) { benchServer(b, endpoints, one, one, last) })
	b.Run("changed", func(b *testing.B) { benchServer(b, endpoints, one, other, last) })
	b.Run("floor", func(b *testing.B) {
		benchHandler(b, one, func(b *testing.B, stream grpc.ServerStream) error {
			for range b.N {
				if err := stream.RecvMsg(&dropped{}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.Run("usual", func(b *testing.B) { benchHandler(b, one, usual(endpoints)) })
}

// benchSink waits for a vote that the first endpoint is down, which only the last report has.
type benchSink struct{ connected, done chan struct{} }

func (s *benchSink) Connected(health.Checker)              { close(s.connected) }
func (s *benchSink) Disconnected(string)                   {}
func (s *benchSink) Ended(string)                          {}
func (s *benchSink) Accepted(string, *specifier.Specifier) {}
func (s *benchSink) Silent(string, bool)                   {}
func (s *benchSink) Reported(_ string, votes []health.Vote) {
	if len(votes) > 0 && votes[0].Endpoint == 0 && votes[0].Status == health.Unhealthy {
		close(s.done)
	}
}

func benchServer(b *testing.B, endpoints []checked, first, second []byte, last wire.Bytes) {
	sink := &benchSink{connected: make(chan struct{}), done: make(chan struct{})}
	server := hds.NewServer(hds.Options{}, sink)
	g := grpc.NewServer(hds.ServerOptions(hds.Options{})...)
	server.Register(g)
	stream := benchDial(b, g)
	hi := wire.Bytes(encode(b, hello(&corev3.Node{Id: "a"})))
	if err := stream.SendMsg(&hi); err != nil {
		b.Fatal(err)
	}
	<-sink.connected
	server.Assign("a", assignment(endpoints...))
	if err := stream.RecvMsg(&dropped{}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	sendReports(b, stream, first, second)
	if err := stream.SendMsg(&last); err != nil {
		b.Fatal(err)
	}
	<-sink.done
	perEntry(b, b.N)
	b.StopTimer()
	g.Stop()
	server.Close()
}

func benchHandler(b *testing.B, message []byte, handle func(*testing.B, grpc.ServerStream) error) {
	done := make(chan error, 1)
	g := grpc.NewServer(append(hds.ServerOptions(hds.Options{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			done <- handle(b, stream)
			return nil
		}))...)
	stream := benchDial(b, g)
	b.ResetTimer()
	sendReports(b, stream, message, message)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	perEntry(b, b.N)
	b.StopTimer()
	g.Stop()
}

func benchDial(b *testing.B, g *grpc.Server) grpc.ClientStream {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = g.Serve(ln) }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec())))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
	if err != nil {
		b.Fatal(err)
	}
	return stream
}

func sendReports(b *testing.B, stream grpc.ClientStream, first, second []byte) {
	messages := []wire.Bytes{first, second}
	for i := range b.N {
		if err := stream.SendMsg(&messages[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}

// usual reads reports as most servers do.
func usual(endpoints []checked) func(*testing.B, grpc.ServerStream) error {
	type key struct{ cluster, address string }
	votes := make(map[key]corev3.HealthStatus, len(endpoints))
	return func(b *testing.B, stream grpc.ServerStream) error {
		for range b.N {
			var b wire.Bytes
			if err := stream.RecvMsg(&b); err != nil {
				return err
			}
			var m healthv3.HealthCheckRequestOrEndpointHealthResponse
			if err := proto.Unmarshal(b, &m); err != nil {
				return err
			}
			for _, c := range m.GetEndpointHealthResponse().GetClusterEndpointsHealth() {
				for _, l := range c.GetLocalityEndpointsHealth() {
					for _, e := range l.GetEndpointsHealth() {
						a := e.GetEndpoint().GetAddress().GetSocketAddress()
						votes[key{c.GetClusterName(), fmt.Sprintf("%s:%d", a.GetAddress(), a.GetPortValue())}] = e.GetHealthStatus()
					}
				}
			}
		}
		return nil
	}
}

// dropped is a message that nobody looks at.
type dropped struct{}

func (*dropped) UnmarshalWire(mem.BufferSlice) error { return nil }
