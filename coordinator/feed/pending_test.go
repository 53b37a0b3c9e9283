package feed

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/catalog"
	"hdsd/publish"
	"hdsd/source"
	"hdsd/source/sample"
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

// TestPendingForOtherSources: a server that has answered, and is then asked for an
// assignment of another source's cluster, is pending again.
func TestPendingForOtherSources(t *testing.T) {
	clusters, endpoints := unreachable(t, "clusters"), unreachable(t, "endpoints")
	all := sources{clusters, endpoints}
	f := &Feed{}
	f.open.Store(&all)
	var last catalog.Delivery
	in := NewIntake(func(d catalog.Delivery) { last = d }, f, zerolog.Nop())
	in.Restart(all.readers(), &catalog.Rules{}, nil)
	p := newPending()
	p.expect(all)
	take := func(set *source.Set) {
		in.Take(in.readers[set.Source], set)
		p.hear(set)
	}
	take(&source.Set{Source: "endpoints"})
	lacks := sample.Web("web", "10.0.0.1:80")
	lacks.Source, lacks.Config, lacks.Assignment = "clusters", publish.TakeOver(lacks.Config, publish.ByADS()), nil
	take(&source.Set{Source: "clusters", Clusters: []*source.Cluster{lacks}})
	if got := p.String(); got == "" || p.ended || last.Complete {
		t.Errorf("nothing is known of web's endpoints, and %q is pending, ended %t, complete %t", got, p.ended, last.Complete)
	}
	if got := p.unanswered(); len(got) != 1 || got[0] != "endpoints" {
		t.Errorf("pending are %v", got)
	}
}
