package xds

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/envoy/rules"
)

// TestKeptAsItCame: whatever hdsd has no use for is in what it hands on, fields
// that it does not know included.
func TestKeptAsItCame(t *testing.T) {
	rich := &endpointv3.ClusterLoadAssignment{
		ClusterName: "web",
		Endpoints: []*endpointv3.LocalityLbEndpoints{
			{
				Locality: &corev3.Locality{Zone: "a"}, Priority: 0, LoadBalancingWeight: wrapperspb.UInt32(3),
				LbEndpoints: []*endpointv3.LbEndpoint{
					{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}},
					{
						HealthStatus: corev3.HealthStatus_DRAINING,
						HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
							Address:             endpoints("", "10.0.0.1").GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress(),
							AdditionalAddresses: []*endpointv3.Endpoint_AdditionalAddress{{Address: endpoints("", "10.0.0.2").GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress()}},
						}},
					},
				},
			},
			{
				Locality: &corev3.Locality{Zone: "b"}, Priority: 1,
				LbConfig: &endpointv3.LocalityLbEndpoints_LedsClusterLocalityConfig{LedsClusterLocalityConfig: &endpointv3.LedsClusterLocalityConfig{
					LedsCollectionName: "xdstp://leds", LedsConfig: &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
				}},
			},
		},
		NamedEndpoints: map[string]*endpointv3.Endpoint{"x": endpoints("", "10.0.0.3").GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint()},
		Policy:         &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(150)},
	}
	rich.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 9999, protowire.BytesType), "from the future"))
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
		p.send(change(rules.Assignment, "n2", wrap("web", "1", rich)))
		set := r.latest()
		if got := set.Clusters[0].Assignment.Message(); !proto.Equal(got, rich) || len(got.ProtoReflect().GetUnknown()) == 0 {
			t.Errorf("handed on: %v", got)
		}
		equal(t, "problems", len(set.Problems), 0)
	})
}

// TestEndpointsOfAPath: they are on the data planes' machines, and no server
// is asked for them.
func TestEndpointsOfAPath(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		c := eds("web", "")
		c.EdsClusterConfig.EdsConfig = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/x"}}}
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("web", "1", c)))
		p.next()
		p.quiet()
		equal(t, "set", said(r.latest()), "web=none")
	})
}

// TestStatusOfResources is what CSDS shows of each.
func TestStatusOfResources(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		var clusters []*clusterv3.Cluster
		for _, name := range []string{"good", "gone", "late", "lapsed", "bad"} {
			clusters = append(clusters, eds(name, ""))
		}
		response := change(rules.Cluster, "n1")
		response.SystemVersionInfo = "s1"
		for _, c := range clusters {
			response.Resources = append(response.Resources, wrap(c.GetName(), "1", c))
		}
		p.send(response)
		before := time.Now()
		lapsed := wrap("lapsed", "4", endpoints("lapsed"))
		lapsed.Ttl = durationpb.New(time.Second)
		response = change(rules.Assignment, "n2", wrap("good", "3", endpoints("good")), lapsed, wrap("bad", "2", endpoints("other")))
		response.RemovedResources = []string{"gone"}
		p.send(response)
		time.Sleep(2 * time.Second)
		got := r.Status().Types[1]
		want := []Resource{
			{Name: "bad", ClientStatus: adminv3.ClientResourceStatus_NACKED, ConfigStatus: statusv3.ConfigStatus_ERROR},
			{Name: "gone", ClientStatus: adminv3.ClientResourceStatus_DOES_NOT_EXIST, ConfigStatus: statusv3.ConfigStatus_NOT_SENT},
			{Name: "good", Version: "3", ClientStatus: adminv3.ClientResourceStatus_ACKED, ConfigStatus: statusv3.ConfigStatus_SYNCED},
			{Name: "lapsed", ClientStatus: adminv3.ClientResourceStatus_DOES_NOT_EXIST, ConfigStatus: statusv3.ConfigStatus_NOT_SENT},
			{Name: "late", ClientStatus: adminv3.ClientResourceStatus_REQUESTED, ConfigStatus: statusv3.ConfigStatus_NOT_SENT},
		}
		equal(t, "resources", len(got.Resources), len(want))
		for i, w := range want {
			g := got.Resources[i]
			equal(t, "name", g.Name, w.Name)
			equal(t, "version of "+g.Name, g.Version, w.Version)
			equal(t, "client status of "+g.Name, g.ClientStatus, w.ClientStatus)
			equal(t, "config status of "+g.Name, g.ConfigStatus, w.ConfigStatus)
		}
		equal(t, "failed configuration", proto.Equal(got.Resources[0].Error.GetFailedConfiguration(), pack(endpoints("other"))), true)
		equal(t, "content", proto.Equal(got.Resources[2].Config, pack(endpoints("good"))), true)
		equal(t, "time", got.Resources[2].LastUpdated.Equal(before), true)
		time.Sleep(15 * time.Second)
		equal(t, "late", r.Status().Types[1].Resources[4].ClientStatus, adminv3.ClientResourceStatus_TIMEOUT)
		equal(t, "version", r.Status().Types[0].Version, "s1")
		equal(t, "acknowledged", r.Status().Types[0].LastAck.Equal(before), true)
	})
}

// TestRealSockets: TCP and unix ones, without a bubble.
func TestRealSockets(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "xds.sock")
			}
			target, stop := real(t, network, address, func(p *deltaPeer) {
				p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1"))))
			})
			defer stop()
			from := clone(deltaSource)
			from.GetApiConfigSource().GetGrpcServices()[0].GetGoogleGrpc().TargetUri = target
			s, err := New(Options{Name: "upstream", ConfigSource: from})
			if err != nil {
				t.Fatal(err)
			}
			r := newNetwork(t).start(s)
			defer r.stop()
			select {
			case set := <-r.sets:
				equal(t, "set", said(set), "a=10.0.0.1")
			case <-time.After(time.Minute):
				t.Error("nothing came")
			}
		})
	}
}

// real serves one script on a real socket; speak is called for each stream.
func real(t testing.TB, network, address string, speak func(*deltaPeer)) (target string, stop func()) {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s, server := newScript(t), grpc.NewServer()
	s.register(server)
	var owned sync.WaitGroup
	owned.Go(func() { _ = server.Serve(listener) })
	ended := make(chan struct{})
	owned.Go(func() {
		for {
			select {
			case p := <-s.delta:
				speak(p)
			case <-ended:
				return
			}
		}
	})
	target = listener.Addr().String()
	if network == "unix" {
		target = "unix://" + target
	}
	return target, func() {
		server.Stop()
		close(ended)
		owned.Wait()
	}
}
