package coordinator

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/coordinator/catalog"
	"hdsd/eds"
	"hdsd/source"
	"hdsd/source/xds"
)

// unreachable is a management server that is never there.
func unreachable(t *testing.T, name string) *opened {
	t.Helper()
	from := &corev3.ConfigSource{}
	text := `{"initial_fetch_timeout": "15s", "api_config_source": {"api_type": "AGGREGATED_DELTA_GRPC", "transport_api_version": "V3",
		"grpc_services": [{"google_grpc": {"target_uri": "unix:///nowhere/` + name + `", "stat_prefix": "x"}}]}}`
	if err := protojson.Unmarshal([]byte(text), from); err != nil {
		t.Fatal(err)
	}
	upstream, err := xds.New(xds.Options{Name: name, ConfigSource: from})
	if err != nil {
		t.Fatal(err)
	}
	return &opened{name: name, upstream: upstream}
}

// TestAwaitedForOthers: who has answered, and is then asked for what a cluster of
// another source takes, is waited for again.
func TestAwaitedForOthers(t *testing.T) {
	clusters, endpoints := unreachable(t, "clusters"), unreachable(t, "endpoints")
	all := &upstreams{}
	all.sources.Store(&sources{clusters, endpoints})
	var last delivery
	in := newIntake(func(d delivery) { last = d })
	in.want, in.pending = all.want, all.pending
	in.restart(all.sources.Load().readers(), &catalog.Rules{})
	a := newAwaited()
	a.expect(*all.sources.Load())
	take := func(set *source.Set) {
		in.hear(set)
		a.hear(set)
	}
	take(&source.Set{Source: "endpoints"})
	lacks := web("web", one)
	lacks.Source, lacks.Config, lacks.Assignment = "clusters", eds.PublishCluster(lacks.Config, eds.ByADS()), nil
	take(&source.Set{Source: "clusters", Clusters: []*source.Cluster{lacks}})
	if got := a.String(); got == "" || a.ended || !last.unread {
		t.Errorf("nothing is known of web's endpoints, and %q is waited for, ended %t, unread %t", got, a.ended, last.unread)
	}
	if got := a.left(); len(got) != 1 || got[0] != "endpoints" {
		t.Errorf("waited for are %v", got)
	}
}
