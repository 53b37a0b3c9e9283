package suggest_test

import (
	"slices"
	"testing"

	"hdsd/internal/suggest"
)

func TestNearest(t *testing.T) {
	names := []string{"web", "web-eu", "pay", "payments", "db", "cache-1", "cache-2", "cache-3", "cache-4"}
	for name, want := range map[string][]string{
		"wbe": {"web"}, "w_eb": {"web"}, "": nil, "WEB": {"web"}, "pay-": {"pay"}, "paymnts": {"payments"}, "zzzzzz": nil, "cache": {"cache-1", "cache-2", "cache-3"},
	} {
		if got := suggest.Nearest(name, names); !slices.Equal(got, want) {
			t.Errorf("nearest to %s: %v, want %v", name, got, want)
		}
	}
}

// TestAnotherWordIsNoTypo: however little of the whole name differs.
func TestAnotherWordIsNoTypo(t *testing.T) {
	names := []string{"tcp_health_check", "http_health_check", "grpc_health_check", "unhealthy_threshold", "no_traffic_interval"}
	for name, want := range map[string][]string{
		"icmp_health_check": nil, "tpc_health_check": {"tcp_health_check"}, "htpp_health_check": {"http_health_check"}, "grpc_helth_check": {"grpc_health_check"},
		"tcphealthcheck": {"tcp_health_check"}, "unhealthy_treshold": {"unhealthy_threshold"}, "no_traffic_intervl": {"no_traffic_interval"},
	} {
		if got := suggest.Nearest(name, names); !slices.Equal(got, want) {
			t.Errorf("nearest to %s: %v, want %v", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "web", 3}, {"web", "web", 0}, {"wbe", "web", 1}, {"wb", "web", 1}, {"kitten", "sitting", 3}} {
		if got := suggest.Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
