package specifier

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// TestProbeTargets: an endpoint with an address that checkers may not probe is excluded alone, also
// where only its check goes there.
func TestProbeTargets(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, text := range all {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	addresses := []string{
		"10.0.0.1", "10.0.0.2", "127.0.0.1", "169.254.1.1", "224.0.0.5", "0.0.0.0", "255.255.255.255",
		"2001:db8::1", "::1", "fe80::1", "ff02::1", "::", "::ffff:169.254.1.1",
	}
	for name, c := range map[string]struct {
		targets Targets
		refused []string
	}{
		"by default": {Targets{}, []string{"169.254.1.1", "224.0.0.5", "0.0.0.0", "fe80::1", "ff02::1", "::", "::ffff:169.254.1.1"}},
		"allowed": {Targets{Allow: prefixes("10.0.0.0/8", "169.254.1.1/32")}, []string{
			"127.0.0.1", "224.0.0.5", "0.0.0.0", "255.255.255.255", "2001:db8::1", "::1", "fe80::1", "ff02::1", "::",
		}},
		"denied": {Targets{Deny: prefixes("10.0.0.2/32", "2001:db8::/32")}, []string{
			"10.0.0.2", "169.254.1.1", "224.0.0.5", "0.0.0.0", "2001:db8::1", "fe80::1", "ff02::1", "::", "::ffff:169.254.1.1",
		}},
		"both": {Targets{Allow: prefixes("0.0.0.0/0", "::/0"), Deny: prefixes("169.254.0.0/16")}, []string{"169.254.1.1", "::ffff:169.254.1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, at := range map[string]func(address *corev3.Address) *endpointv3.Endpoint{
				"endpoint":       func(a *corev3.Address) *endpointv3.Endpoint { return &endpointv3.Endpoint{Address: a} },
				"named endpoint": func(a *corev3.Address) *endpointv3.Endpoint { return &endpointv3.Endpoint{Address: a, Hostname: "web"} },
				"endpoint's check": func(a *corev3.Address) *endpointv3.Endpoint {
					return &endpointv3.Endpoint{
						Address:           probed("10.0.0.1", a.GetSocketAddress().GetPortValue()),
						HealthCheckConfig: &endpointv3.Endpoint_HealthCheckConfig{Address: a},
					}
				},
			} {
				l := &endpointv3.LocalityLbEndpoints{}
				for i, text := range addresses {
					e := at(probed(text, uint32(i+1)))
					l.LbEndpoints = append(l.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}})
				}
				check := &corev3.HealthCheck{}
				parse(t, `timeout {seconds: 1} interval {seconds: 1} unhealthy_threshold {value: 1} healthy_threshold {value: 1} tcp_health_check {}`, check)
				out := Translate("web", &clusterv3.Cluster{Name: "web"}, &endpointv3.ClusterLoadAssignment{
					ClusterName: "web", Endpoints: []*endpointv3.LocalityLbEndpoints{l},
				}, []*corev3.HealthCheck{check}, Options{Targets: c.targets})
				var refused []string
				for _, e := range out.Excluded {
					if refused = append(refused, addresses[e.Index]); !strings.Contains(e.Reason, "checkers may not probe") {
						t.Errorf("%s: %s is excluded: %s", kind, addresses[e.Index], e.Reason)
					}
				}
				if !slices.Equal(refused, c.refused) {
					t.Errorf("%s: refused %v, want %v", kind, refused, c.refused)
				}
			}
		})
	}
}

func probed(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// TestShortIntervalsAreRaised to the shortest that checkers may use, and no other is.
func TestShortIntervalsAreRaised(t *testing.T) {
	a := assignment(t, `endpoints {`+endpointText("10.0.0.1")+`}`)
	short := func(text string) []*corev3.HealthCheck {
		return []*corev3.HealthCheck{parse(t, `timeout {seconds: 1} unhealthy_threshold {value: 1} healthy_threshold {value: 1} tcp_health_check {} `+text, &corev3.HealthCheck{})}
	}
	for text, want := range map[string]struct{ raised, interval, healthy, down time.Duration }{
		`interval {nanos: 20000000}`:                                   {20 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		`interval {seconds: 1} unhealthy_interval {nanos: 1000000}`:    {time.Millisecond, time.Second, time.Second, 100 * time.Millisecond},
		`interval {nanos: 100000000} unhealthy_interval {seconds: 1}`:  {0, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		`interval {seconds: 1} no_traffic_interval {nanos: 1000000}`:   {0, time.Second, time.Second, time.Second},
		`interval {nanos: 20000000} no_traffic_interval {seconds: 60}`: {20 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		c := Translate("web", nil, a, short(text), Options{MinInterval: 100 * time.Millisecond})
		sent := c.Checks()[0]
		if c.Raised != want.raised || sent.GetInterval().AsDuration() != want.interval ||
			sent.GetNoTrafficHealthyInterval().AsDuration() != want.healthy || sent.GetNoTrafficInterval().AsDuration() != want.down {
			t.Errorf("%s: raised %v, sent %v", text, c.Raised, sent)
		}
	}
	quick := short(`interval {nanos: 1000000} no_traffic_healthy_interval {nanos: 2000000}`)
	if c := Translate("web", nil, a, quick, Options{MinInterval: time.Second, NoTrafficIntervals: true}); c.Raised != time.Millisecond || c.Timing.Interval != time.Second {
		t.Errorf("with the intervals without traffic: raised %v, judged by %v", c.Raised, c.Timing.Interval)
	}
}
