package coordinator_test

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// stubborn is a control plane that answers each NACK at once with the same cluster, and each
// ACK of a listener with the next one.
type stubborn struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	nacks, acks, nonces atomic.Int32
}

// answer is the resource with which it answers a request; nil: it does not.
func (s *stubborn) answer(typeURL, nonce string, refusal *rpcstatus.Status) (name, version string, r *anypb.Any) {
	version = fmt.Sprint(s.nonces.Add(1))
	var m proto.Message
	switch {
	case typeURL == resourcev3.ListenerType:
		s.acks.Add(1)
		name, m = "front", &listenerv3.Listener{Name: "front", StatPrefix: version}
	case typeURL != resourcev3.ClusterType || nonce != "" && refusal == nil:
		return "", "", nil
	default:
		if refusal != nil {
			s.nacks.Add(1)
		}
		name, m = "web", &clusterv3.Cluster{Name: "web", AltStatName: version}
	}
	r, _ = anypb.New(m) // it is valid
	return name, version, r
}

func (s *stubborn) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if _, version, packed := s.answer(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail()); packed != nil {
			err = stream.Send(&discoveryv3.DiscoveryResponse{TypeUrl: r.GetTypeUrl(), VersionInfo: version, Nonce: version, Resources: []*anypb.Any{packed}})
		}
		if err != nil {
			return err
		}
	}
}

func (s *stubborn) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if name, version, packed := s.answer(r.GetTypeUrl(), r.GetResponseNonce(), r.GetErrorDetail()); packed != nil {
			err = stream.Send(&discoveryv3.DeltaDiscoveryResponse{
				TypeUrl: r.GetTypeUrl(), Nonce: version, Resources: []*discoveryv3.Resource{{Name: name, Version: version, Resource: packed}},
			})
		}
		if err != nil {
			return err
		}
	}
}

// TestNACKsArePaced covers a loop of NACKs: the first ten go to the control plane at once, then one a second.
// ACKs of another type do not wait.
func TestNACKsArePaced(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		t.Parallel()
		m := newManagement(t) // never comes: another server is at its address
		listener, err := net.Listen("tcp", m.address)
		if err != nil {
			t.Fatal(err)
		}
		control, server := &stubborn{}, grpc.NewServer()
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, control)
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		t.Cleanup(func() { server.Stop(); serving.Wait() })
		s := newSite(t, t.TempDir(), relaying(m, ""), "")
		s.ready()
		c := s.newClient(delta, "edge-1")
		c.refuses = func(h *heard) string {
			if h.typeURL == resourcev3.ClusterType {
				return "no"
			}
			return ""
		}
		began := time.Now()
		c.talker.ask(resourcev3.ClusterType, nil, nil)
		go c.run()
		s.eventually("the first NACKs", func() bool { return control.nacks.Load() >= 10 })
		c.talker.ask(resourcev3.ListenerType, nil, nil)
		s.eventually("ACKs", func() bool { return control.acks.Load() >= 500 })
		if got, most := control.nacks.Load(), 11+int32(time.Since(began)/time.Second); got > most {
			t.Errorf("the control plane got %d NACKs, want up to %d", got, most)
		}
		before := control.nacks.Load()
		s.eventually("another NACK", func() bool { return control.nacks.Load() > before })
	})
}
