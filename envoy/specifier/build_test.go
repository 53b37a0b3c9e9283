package specifier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hdsd/envoy"
	"hdsd/health"
)

// fleet translates n endpoints in clusters of a given size.
func fleet(t testing.TB, n, size int) []Item {
	t.Helper()
	checks := []*corev3.HealthCheck{check(t, `http_health_check {path: "/"}`)}
	var items []Item
	for len(items) < n {
		a := &endpointv3.ClusterLoadAssignment{}
		for zone := range 3 {
			l := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Zone: fmt.Sprint(zone)}}
			for i := range size / 3 {
				l.LbEndpoints = append(l.LbEndpoints, parse(t, fmt.Sprintf(`endpoint {address {socket_address {address: "10.%d.%d.%d" port_value: 80}}}`, zone, i/250, i%250), &endpointv3.LbEndpoint{}))
			}
			a.Endpoints = append(a.Endpoints, l)
		}
		c := Translate(fmt.Sprintf("cluster-%d", len(items)), nil, a, checks, Options{})
		for i := range c.Endpoints {
			items = append(items, Item{Cluster: c, Endpoint: i, ID: health.EndpointID(len(items))})
		}
	}
	return items[:n]
}

func TestBuildIsDeterministicAndWellFormed(t *testing.T) {
	items := fleet(t, 600, 90)
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfN(rapid.SampledFrom(items), 0, 200).Draw(t, "items")
		a := Build(chosen, time.Second)
		shuffled := slices.Clone(chosen)
		rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if b := Build(shuffled, time.Second); !proto.Equal(a.Message(), b.Message()) || !slices.Equal(a.Order, b.Order) || !slices.Equal(a.Addresses, b.Addresses) {
			t.Fatal("the order of the items matters")
		}
		if wrong := malformed(a); wrong != "" {
			t.Fatal(wrong)
		}
		want := map[health.EndpointID]bool{}
		for _, item := range chosen {
			want[item.ID] = true
		}
		if len(want) != len(a.Order) {
			t.Fatalf("%d endpoints are sent, want %d", len(a.Order), len(want))
		}
		for _, id := range a.Order {
			if !want[id] {
				t.Fatalf("endpoint %d is sent, which was not asked for", id)
			}
		}
	})
}

// malformed says what no specifier may be.
func malformed(s *Specifier) string {
	if err := s.Message().ValidateAll(); err != nil {
		return err.Error()
	}
	encoded, err := s.Encode()
	sent := &healthv3.HealthCheckSpecifier{}
	if err != nil || proto.Unmarshal(encoded, sent) != nil || !proto.Equal(sent, s.Message()) {
		return fmt.Sprintf("encoded it is %v (%v)", sent, err)
	}
	names := map[string]bool{}
	entries := 0
	for _, c := range s.Message().GetClusterHealthChecks() {
		if names[c.GetClusterName()] || len(c.GetLocalityEndpoints()) == 0 || len(c.GetHealthChecks()) == 0 {
			return fmt.Sprintf("cluster %q is there twice, or has nothing in it", c.GetClusterName())
		}
		names[c.GetClusterName()] = true
		seen := map[string]bool{}
		for _, l := range c.GetLocalityEndpoints() {
			if seen[keyText(l.GetLocality(), "")] || len(l.GetEndpoints()) == 0 {
				return fmt.Sprintf("locality %v is there twice, or empty", l.GetLocality())
			}
			seen[keyText(l.GetLocality(), "")] = true
			for _, e := range l.GetEndpoints() {
				address := envoy.Address(e.GetAddress())
				if key := keyText(l.GetLocality(), address); seen[key] {
					return fmt.Sprintf("endpoint %s is there twice", key)
				} else {
					seen[key] = true
				}
				if entries >= len(s.Addresses) || s.Addresses[entries] != address {
					return fmt.Sprintf("entry %d is %s, and is not said to be", entries, address)
				}
				entries++
			}
		}
	}
	if entries != len(s.Order) || entries != len(s.Addresses) {
		return fmt.Sprintf("%d entries, %d ids, %d addresses", entries, len(s.Order), len(s.Addresses))
	}
	return ""
}

func keyText(l *corev3.Locality, address string) string {
	return fmt.Sprintf("%q %q %q %q", l.GetRegion(), l.GetZone(), l.GetSubZone(), address)
}

func TestReportIntervalIsNeverNone(t *testing.T) {
	for _, interval := range []time.Duration{-1, 0} {
		if got := Build(nil, interval).Message().GetInterval().AsDuration(); got != time.Second {
			t.Errorf("interval %v becomes %v", interval, got)
		}
	}
	if got := Build(nil, 250*time.Millisecond).Message().GetInterval().AsDuration(); got != 250*time.Millisecond {
		t.Errorf("got %v", got)
	}
}

func BenchmarkBuild(b *testing.B) {
	items := fleet(b, 100_000, 90)
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	b.ReportAllocs()
	for b.Loop() {
		Build(items, time.Second)
	}
}

func BenchmarkTranslate(b *testing.B) {
	a := &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
	for i := range 1000 {
		a.Endpoints[0].LbEndpoints = append(a.Endpoints[0].LbEndpoints, parse(b, fmt.Sprintf(`endpoint {address {socket_address {address: "10.0.%d.%d" port_value: 80}}}`, i/250, i%250), &endpointv3.LbEndpoint{}))
	}
	checks := []*corev3.HealthCheck{check(b, `http_health_check {path: "/"}`)}
	b.ReportAllocs()
	for b.Loop() {
		Translate("web", nil, a, checks, Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/endpoint")
}
