package coordinator_test

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// TestClaimedResourcesAreNotSent covers a client that claims resources which hdsd has never seen. If it
// claims more than limits.max_subscriptions allows, hdsd sends them again, and serves it.
func TestClaimedResourcesAreNotSent(t *testing.T) {
	for _, test := range []struct {
		more     int
		again    bool
		refusals float64
	}{{0, false, 0}, {10_000, true, 1}} {
		t.Run(fmt.Sprint(test.more), func(t *testing.T) {
			t.Parallel()
			m := newManagement(t)
			m.come()
			m.says(byEDS("web", "new"), endpoints("web", corev3.HealthStatus_UNKNOWN, "127.0.0.1:1"))
			s := newSite(t, t.TempDir(), relaying(m, "")+"limits: {max_subscriptions: 100, max_subscriptions_per_caller: 100}\n", "")
			s.ready()
			first := s.client(true, "edge-1", "web")
			s.eventually("its clusters", func() bool { return first.cluster("web") != nil })

			first.mu.Lock()
			had := map[string]string{"web": first.versions[resourcev3.ClusterType]["web"]}
			first.mu.Unlock()
			for i := range test.more {
				had[fmt.Sprintf("cluster-%d", i)] = "1"
			}
			c := s.newClient(true, "edge-2")
			c.talker.ask(resourcev3.ClusterType, nil, had)
			go c.run()
			s.eventually("what it lacks", func() bool { return c.cluster("new") != nil })
			if again := c.cluster("web") != nil; again != test.again {
				t.Errorf("sent again what it has: %t, want %t", again, test.again)
			}
			if got := s.scrape().sum("hdsd_limit_refusals_total"); got != test.refusals {
				t.Errorf("%v refusals, want %v", got, test.refusals)
			}
		})
	}
}
