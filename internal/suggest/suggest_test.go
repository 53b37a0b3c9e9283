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
