package scale

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/wire"
)

// largePlane is a control plane with one large response for each kind of nodes (node.cluster).
type largePlane struct {
	kindsPlane
	says [][]byte
}

// newLargePlane makes one with so many kinds, whose responses have so many resources of so many
// bytes.
func newLargePlane(t testing.TB, typeURL string, kinds, resources, bytes int) *largePlane {
	t.Helper()
	p := &largePlane{}
	for kind := range kinds {
		out := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURL, Nonce: "1"}
		for i := range resources {
			name := fmt.Sprintf("large-%d", i)
			body, err := proto.Marshal(&clusterv3.Cluster{Name: name, AltStatName: strconv.Itoa(kind)})
			if err != nil {
				t.Fatal(err)
			}
			body = protowire.AppendBytes(protowire.AppendTag(body, 4000, protowire.BytesType), make([]byte, bytes)) // of another time
			out.Resources = append(out.Resources, &discoveryv3.Resource{Name: name, Version: "1", Resource: &anypb.Any{TypeUrl: typeURL, Value: body}})
		}
		said, err := proto.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		p.says = append(p.says, said)
	}
	p.address = servePlane(t, func(s grpc.ServerStream) error {
		kind := -1
		for told := false; ; told = true {
			if _, err := nextRequest(s, &kind); err != nil {
				return err
			}
			said := wire.Bytes(p.says[kind])
			if told {
				continue
			}
			if err := s.SendMsg(&said); err != nil {
				return err
			}
		}
	})
	return p
}

// BenchmarkLargeAnswers has 20 data planes take a response of 50 MB at the same time: the same, or
// each another one; clusters, of which hdsd keeps what clients have, or routes, which pass. It gives
// the peak of hdsd's resident memory beside that at rest, and how long the last one takes.
// HDSD_BINARY is the hdsd to measure, HDSD_LIMITS a line of its configuration.
func BenchmarkLargeAnswers(b *testing.B) {
	const nodes = 20
	for _, typeURL := range []string{resourcev3.RouteType, resourcev3.ClusterType} {
		for _, kinds := range []int{1, nodes} {
			b.Run(fmt.Sprintf("%s/kinds=%d", typeURL[len("type.googleapis.com/envoy.config."):], kinds), func(b *testing.B) {
				for b.Loop() {
					p := newLargePlane(b, typeURL, kinds, 500, 100_000)
					s := simulate(b, newWorld(1, 1), 0, 1, time.Second, os.Getenv("HDSD_LIMITS")+"\n")
					if path := os.Getenv("HDSD_BINARY"); path != "" {
						s.Binary = path
					}
					s.relayTo(&p.kindsPlane)
					s.Start()
					before := usageOf(b, s.PID())
					began := time.Now()
					var all sync.WaitGroup
					for i := range nodes {
						all.Go(func() { takeLarge(b, s.GRPC, typeURL, i, i%kinds, len(p.says[0])) })
					}
					all.Wait()
					b.ReportMetric(time.Since(began).Seconds(), "last-s")
					b.ReportMetric(float64(usageOf(b, s.PID()).peak-before.resident)/1e6, "more-MB")
					b.ReportMetric(float64(len(p.says[0]))/1e6, "answer-MB")
					b.ReportMetric(load(b), "load")
					s.Kill()
				}
			})
		}
	}
}

// takeLarge has a data plane take a response, and acknowledge it.
func takeLarge(b *testing.B, server, typeURL string, number, kind, size int) {
	b.Helper()
	conn := dialRelay(b, server)
	defer conn.Close()
	s, err := conn.NewStream(b.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources", grpc.ForceCodecV2(wire.Codec()))
	if err == nil {
		err = s.SendMsg(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: fmt.Sprintf("node-%d", number), Cluster: strconv.Itoa(kind)}, TypeUrl: typeURL, ResourceNamesSubscribe: []string{"*"},
		})
	}
	var got wire.Bytes
	if err == nil {
		err = s.RecvMsg(&got)
	}
	if err != nil || len(got) < size {
		b.Errorf("node %d: %d bytes of %d, %v", number, len(got), size, err)
	}
	_ = s.SendMsg(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: "1"})
}
