package envoy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	real "hdsd/test/upstream"
)

// answer returns the status and code that the latest report has of an endpoint, as
// "UNHEALTHY/503".
func (s *subject) answer(cluster string) string {
	for _, c := range s.report.Load().GetClusterEndpointsHealth() {
		if c.GetClusterName() == cluster {
			e := c.GetLocalityEndpointsHealth()[0].GetEndpointsHealth()[0]
			text := e.GetHealthStatus().String()
			if code, ok := e.GetHealthMetadata().GetFields()["http_status_code"]; ok {
				text += fmt.Sprintf("/%g", code.GetNumberValue())
			}
			return text
		}
	}
	return ""
}

// TestReportsOfDegradedEndpoints: what real Envoys report of an endpoint that becomes
// degraded, fails and recovers is what the verdict counts on. An endpoint that is degraded
// and one that has yet to pass often enough look the same. So do, to 1.38, one that is
// degraded and one that gives no answer any more.
func TestReportsOfDegradedEndpoints(t *testing.T) {
	degraded := real.Healthy()
	degraded.Header = http.Header{"X-Envoy-Degraded": {""}}
	healthy, failing := real.Healthy(), real.Status(http.StatusServiceUnavailable)
	steps := []struct {
		name      string
		behaviour real.Behaviour
		states    []string // what is reported on the way; the last stays
		recovers  string   // what is reported first if healthy_threshold is above 1
		stale     []string // states of 1.38, where they differ
	}{
		{name: "fresh and degraded", behaviour: degraded, states: []string{"UNHEALTHY", "UNHEALTHY/200"}},
		{name: "healthy", behaviour: healthy, states: []string{"HEALTHY/200"}},
		{name: "degraded", behaviour: degraded, states: []string{"UNHEALTHY/200"}},
		{name: "failing", behaviour: failing, states: []string{"UNHEALTHY/503"}},
		{name: "healthy again", behaviour: healthy, states: []string{"HEALTHY/200"}, recovers: "UNHEALTHY/200"},
		{name: "failing again", behaviour: failing, states: []string{"UNHEALTHY/503"}},
		{name: "degraded after a failure", behaviour: degraded, states: []string{"UNHEALTHY/200"}},
		{name: "no longer degraded", behaviour: healthy, states: []string{"HEALTHY/200"}},
		{name: "away", behaviour: real.Refuse(), states: []string{"UNHEALTHY"}, stale: []string{"UNHEALTHY/200"}},
		{name: "back", behaviour: healthy, states: []string{"HEALTHY/200"}, recovers: "UNHEALTHY/200"},
		{name: "hanging", behaviour: real.Hang(), states: []string{"TIMEOUT"}, stale: []string{"TIMEOUT/200"}},
		{name: "back after a timeout", behaviour: healthy, states: []string{"HEALTHY/200"}, recovers: "TIMEOUT/200"},
	}
	for _, version := range []string{"1.36.4", "1.38.3", "1.40.0"} {
		for _, threshold := range []uint32{1, 3} {
			t.Run(fmt.Sprintf("%s-%d", version, threshold), func(t *testing.T) {
				l := newLab(t)
				server, err := real.Start(t.Context(), real.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(server.Close)
				check := SoundCheck()
				check.HealthyThreshold = wrapperspb.UInt32(threshold)
				check.Interval, check.Timeout = durationpb.New(200*time.Millisecond), durationpb.New(150*time.Millisecond)
				check.NoTrafficInterval, check.NoTrafficHealthyInterval = check.Interval, check.Interval
				check.InitialJitter = durationpb.New(300 * time.Millisecond)
				s := l.subject(t, version)
				for i, step := range steps {
					if err := server.Set(step.behaviour); err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						s.out <- &healthv3.HealthCheckSpecifier{Interval: durationpb.New(10 * time.Millisecond), ClusterHealthChecks: []*healthv3.ClusterHealthCheck{{
							ClusterName: "web", HealthChecks: []*corev3.HealthCheck{check},
							LocalityEndpoints: []*healthv3.LocalityEndpoints{{Endpoints: []*endpointv3.Endpoint{endpointOf(server.Addr())}}},
						}}}
					}
					want := step.states
					if version == "1.38.3" && step.stale != nil {
						want = step.stale
					}
					if threshold > 1 && step.recovers != "" {
						want = append([]string{step.recovers}, want...)
					}
					if version == "1.36.4" { // it reports no code
						want = slices.Clone(want)
						for i, state := range want {
							want[i], _, _ = strings.Cut(state, "/")
						}
						want = slices.Compact(want)
					}
					s.follow(t, step.name, want)
				}
			})
		}
	}
}

// follow waits for the last of some states to be reported. Before it, nothing may be
// reported but the state before and the others in their order.
func (s *subject) follow(t *testing.T, step string, states []string) {
	t.Helper()
	before, reached, last := s.answer("web"), 0, ""
	if !Await(patience, func() bool {
		last = s.answer("web")
		if i := slices.Index(states[reached:], last); i >= 0 {
			reached += i
		} else if last != before || reached > 0 {
			t.Errorf("%s: %q is reported, want %v", step, last, states)
		}
		return last == states[len(states)-1]
	}) {
		t.Fatalf("%s: %s is reported, want %v", step, last, states)
	}
}
