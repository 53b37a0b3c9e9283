package specifier

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestComparer: an endpoint is the same as long as its specifier says the same of it,
// wherever it stands in its cluster.
func TestComparer(t *testing.T) {
	const plain = `http_health_check {path: "/"}`
	build := func(how string, addresses ...string) *Cluster {
		text := ""
		for _, address := range addresses {
			text += endpointText(address)
		}
		return Translate("web", nil, assignment(t, "endpoints {"+text+"}"), []*corev3.HealthCheck{check(t, how)}, Options{})
	}
	before := build(plain, "10.0.0.1", "10.0.0.2")
	for name, test := range map[string]struct {
		after *Cluster
		i, j  int
		same  bool
	}{
		"the same":            {build(plain, "10.0.0.1", "10.0.0.2"), 0, 0, true},
		"at another place":    {build(plain, "10.0.0.2", "10.0.0.1"), 0, 1, true},
		"another address":     {build(plain, "10.0.0.1", "10.0.0.2"), 0, 1, false},
		"checked another way": {build(`http_health_check {path: "/other"}`, "10.0.0.1", "10.0.0.2"), 0, 0, false},
	} {
		same := Comparer(before, test.after)
		for range 2 { // also from memory
			if got := same(test.i, test.j); got != test.same {
				t.Errorf("%s: the same is %t", name, got)
			}
		}
	}
}
