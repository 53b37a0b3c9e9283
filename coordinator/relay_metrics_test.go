package coordinator_test

import (
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// withRelay is a coordinator with a relay.
func withRelay(t *testing.T) *site {
	t.Helper()
	m := newManagement(t)
	m.come()
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	return s
}

// TestRelayMetrics covers clients, resources, flips, refusals, and the state while the control plane is away.
func TestRelayMetrics(t *testing.T) {
	t.Parallel()
	address, answers := upstream(t)
	m := newManagement(t)
	m.come()
	m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.ready()
	s.checker("c1")
	is := func(metric string, want float64) {
		t.Helper()
		s.eventually(metric, func() bool { return s.scrape().sum(metric) == want })
	}
	is("hdsd_relay_streams", 0)
	c := s.newClient(true, "edge-1")
	var refusing atomic.Bool // the next response with clusters, and none after it
	c.refuses = func(h *heard) string {
		if h.typeURL == resourcev3.ClusterType && refusing.CompareAndSwap(true, false) {
			return "no"
		}
		return ""
	}
	c.talker.ask(resourcev3.ClusterType, nil, nil)
	c.talker.ask(resourcev3.EndpointType, []string{"web"}, nil)
	go c.run()
	is("hdsd_relay_streams", 1)
	is("hdsd_relay_resources", 2)
	s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
	before := s.scrape().sum("hdsd_relay_health_responses_total")
	answers.Store(fails)
	s.eventually("the failure", func() bool { return c.health("web") == "UNHEALTHY" })
	if after := s.scrape().sum("hdsd_relay_health_responses_total"); after <= before {
		t.Errorf("%v responses of its own, %v before", after, before)
	}
	is("hdsd_relay_refusals_total", 0)
	refusing.Store(true)
	m.says(byEDS("web", "new"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
	is("hdsd_relay_refusals_total", 1)
	is("hdsd_relay_upstream_failures_total", 0)
	m.leave()
	<-c.ended
	again := s.reconnect(true, c, "web")
	is("hdsd_relay_streams_from_memory", 1)
	s.eventually("a failure", func() bool { return s.scrape().sum("hdsd_relay_upstream_failures_total") >= 1 })
	again.stop()
	is("hdsd_relay_streams_from_memory", 0)
	is("hdsd_relay_streams", 0)
}

// TestRelayCountsRefusedStreams covers a control plane that refuses each stream.
func TestRelayCountsRefusedStreams(t *testing.T) {
	t.Parallel()
	m := newManagement(t) // never comes: another server is at its address
	m.replace()
	s := newSite(t, t.TempDir(), relaying(m, ""), "")
	s.eventually("the service", func() bool { code, _ := s.get("/readyz"); return code == 200 })
	c := s.client(true, "edge-1", "web")
	if err := <-c.ended; status.Code(err) != codes.Unimplemented {
		t.Errorf("the stream ends with %v", err)
	}
	s.eventually("a failure", func() bool { return s.scrape().sum("hdsd_relay_upstream_failures_total") == 1 })
}
