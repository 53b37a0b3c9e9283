package feed

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/rs/zerolog"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/names"
	"hdsd/source/sample"
)

// rotating is the name of the cluster of newRotating.
var rotating = names.Question{Host: "web.test"}

// newRotating makes an Intake with a cluster that has a name and these endpoints.
func newRotating(from *source.Cluster) *Intake {
	in := NewIntake(func(catalog.Delivery) {}, nil, zerolog.Nop())
	in.dns.bySource[from.Source] = &named{clusters: map[names.Question][]string{rotating: {from.Name, "other"}}}
	in.prepared[from.Name] = catalog.Prepare(from, catalog.NewRules(&configv1.Config{}))
	return in
}

// TestCheckedEndpointsByAddress: those that are checked, in all ports and localities, of clusters
// of the source that has the name.
func TestCheckedEndpointsByAddress(t *testing.T) {
	web := sample.Web("web", "10.0.0.1:80", "10.0.0.10:80", "10.0.0.1:8080", "10.0.0.2:80", "[fd00::1]:80", "[fd00::1:1]:80", "10.0.0.4:70000")
	sample.Change(web, func(a *endpointv3.ClusterLoadAssignment) {
		for _, zone := range []string{"b", "", "c"} {
			group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: zone}}
			group.LbEndpoints = append(group.LbEndpoints, sample.Endpoint("10.0.0.9:80"), sample.Endpoint("10.0.0.5:80"))
			a.Endpoints = append(a.Endpoints, group)
		}
	})
	in := newRotating(web)
	at := func(q names.Question, addresses ...string) (text string) {
		var asked []netip.Addr
		for _, address := range addresses {
			asked = append(asked, netip.MustParseAddr(address))
		}
		all, hosts := in.checkedAt(q, asked)
		for i, e := range all {
			text += fmt.Sprint(e.Locality().Zone, " ", e.Address(), "=", hosts[i], "; ")
		}
		return text
	}
	for want, got := range map[string]string{
		"a 10.0.0.1:80=10.0.0.1; a 10.0.0.1:8080=10.0.0.1; ":                      at(rotating, "10.0.0.1", "10.0.0.3", "10.0.0.4"),
		"a [fd00::1]:80=fd00::1; a 10.0.0.2:80=10.0.0.2; ":                        at(rotating, "fd00::1", "10.0.0.2"),
		" 10.0.0.9:80=10.0.0.9; b 10.0.0.9:80=10.0.0.9; c 10.0.0.9:80=10.0.0.9; ": at(rotating, "10.0.0.9"),
		"": at(names.Question{Host: "other.test"}, "10.0.0.1"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	in.prepared["web"] = catalog.Prepare(sample.Web("web", "10.0.0.2:90"), catalog.NewRules(&configv1.Config{}))
	if got := at(rotating, "10.0.0.1", "10.0.0.2"); got != "a 10.0.0.2:90=10.0.0.2; " {
		t.Errorf("of another version: %q", got)
	}
	in.prepared["web"].Source.Source = "another"
	if got := at(rotating, "10.0.0.2"); got != "" {
		t.Errorf("of another source: %q", got)
	}
}

// BenchmarkStandings looks up two addresses of a name whose cluster has few endpoints, or many: it
// costs hardly more.
func BenchmarkStandings(b *testing.B) {
	const few, many, lookups = 10, 100_000, 100
	asked := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.7")}
	intake := func(endpoints int) *Intake {
		addresses := make([]string, endpoints)
		for i := range addresses {
			addresses[i] = fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)
		}
		return newRotating(sample.Web("web", addresses...))
	}
	each := func(in *Intake) float64 {
		began := time.Now()
		for range lookups {
			if all, _ := in.checkedAt(rotating, asked); len(all) != len(asked) {
				b.Fatalf("%d endpoints", len(all))
			}
		}
		return float64(time.Since(began)) / lookups
	}
	small, large := intake(few), intake(many)
	var ofFew, ofMany float64
	for b.Loop() {
		ofFew += each(small)
		ofMany += each(large)
	}
	b.ReportMetric(ofMany/float64(b.N), "ns/lookup")
	b.ReportMetric(ofMany/ofFew, "ratio-to-few")
}
