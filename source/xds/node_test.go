package xds

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy/rules"
)

// byCluster is a control plane that tells its clients apart by node.cluster, as Envoy
// Gateway does.
type byCluster struct{}

func (byCluster) ID(node *corev3.Node) string { return "cluster " + node.GetCluster() }

// TestNodeOfASource: whatever the way, the server hears the node that is configured.
func TestNodeOfASource(t *testing.T) {
	for name, from := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				n := newNetwork(t)
				m, stopManager := n.manageFor(ctx, "cluster eg", byCluster{})
				m.publish("1", []*clusterv3.Cluster{eds("web", "")}, endpoints("web", "10.0.0.1"))
				asNone := n.run(from)
				asEG := n.run(from, func(o *Options) { o.As = &corev3.Node{Cluster: "eg"} })
				defer func() {
					asNone.stop()
					asEG.stop()
					cancel()
					stopManager()
					synctest.Wait()
				}()
				time.Sleep(2 * time.Second) // for REST to poll
				equal(t, "as a node of the cluster", said(asEG.latest()), "web=10.0.0.1")
				asNone.nothing()
				if name == "REST" {
					return // no answer means that the request timed out
				}
				time.Sleep(15 * time.Second)
				has(t, "advice", asNone.latest().Problems[0].String(), "it can be reached, but may know no node such as hdsd's: set sources[].node")
			})
		})
	}
}

// TestNodeIsMerged: what is not configured is hdsd's own.
func TestNodeIsMerged(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		own := &corev3.Node{Id: "hdsd-1", UserAgentName: "hdsd", UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1.2"}}
		metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "LABELS": map[string]any{"app": "web"}})
		if err != nil {
			t.Fatal(err)
		}
		wire := func(o *Options) { o.Node = own }
		for _, one := range []struct{ as, want *corev3.Node }{
			{nil, own},
			{
				&corev3.Node{Id: "router~10.0.0.9~hdsd.shop~shop.svc", Cluster: "eg", Metadata: metadata, Locality: &corev3.Locality{Zone: "a"}},
				&corev3.Node{
					Id: "router~10.0.0.9~hdsd.shop~shop.svc", Cluster: "eg", Metadata: metadata, Locality: &corev3.Locality{Zone: "a"},
					UserAgentName: "hdsd", UserAgentVersionType: own.GetUserAgentVersionType(),
				},
			},
			{
				&corev3.Node{UserAgentName: "envoy", ClientFeatures: []string{wrapsResources}, UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1.40.0"}},
				&corev3.Node{Id: "hdsd-1", UserAgentName: "envoy", UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1.40.0"}},
			},
		} {
			one.want = proto.CloneOf(one.want)
			one.want.ClientFeatures = []string{wrapsResources}
			s := newScript(t)
			stop := n.serve("one", s.register)
			r := n.run(deltaSource, wire, func(o *Options) { o.As = one.as })
			got := next(t, s.delta).next().GetNode()
			if !proto.Equal(got, one.want) || !proto.Equal(r.Status().Node, one.want) {
				t.Errorf("as %v: the server heard %v, and status says %v", one.as, got, r.Status().Node)
			}
			r.stop()
			stop()
		}
	})
}

// TestSnapshotOfAnotherNode is not used: the server may say something else to this one.
func TestSnapshotOfAnotherNode(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		path := filepath.Join(t.TempDir(), "upstream.pb")
		as := func(cluster string) func(*Options) {
			return func(o *Options) { o.Snapshot, o.As = path, &corev3.Node{Cluster: cluster} }
		}
		s := newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(deltaSource, as("eg"))
		p := next(t, s.delta)
		p.send(change(rules.Cluster, "n1", wrap("db", "7", inline("db", "10.0.0.2"))))
		r.latest()
		r.stop()
		stop()
		other := n.run(deltaSource, as("other"))
		other.nothing()
		other.stop()
		same := n.run(deltaSource, as("eg"))
		equal(t, "set", said(same.latest()), "db=10.0.0.2")
		same.stop()
	})
}
