package hostile

import (
	"net"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// TestFewFileDescriptors: hdsd may open 64 files, and callers take all of them. Who is
// connected already is served, an outage is found, and the log says what is scarce. When
// the callers leave, new ones get in.
func TestFewFileDescriptors(t *testing.T) {
	t.Parallel()
	s, up := newSiteUnder(t, "ulimit -n 64")
	query := hdsdv1.NewQueryClient(s.dial(t))
	health := func() corev3.HealthStatus {
		answer, err := query.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{Cluster: "web", Address: s.up})
		if err != nil || len(answer.GetEndpoints()) != 1 {
			t.Fatalf("%v, %v", answer, err)
		}
		return answer.GetEndpoints()[0].GetHealth()
	}
	if now := health(); now != corev3.HealthStatus_HEALTHY {
		t.Fatalf("it begins as %v", now)
	}
	var callers []net.Conn
	for i := range 200 {
		address := []string{s.GRPC, s.HTTP}[i%2]
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil { // the kernel takes some that hdsd cannot
			callers = append(callers, c)
		}
	}
	envoy.Eventually(t, fleet.Patience, "the log to say what is scarce", func() bool { return strings.Contains(s.Logs(), "too many open files") })
	if err := up.Set(upstream.Status(503)); err != nil {
		t.Fatal(err)
	}
	envoy.Eventually(t, fleet.Patience, "the outage to be found", func() bool { return health() == corev3.HealthStatus_UNHEALTHY })
	for _, c := range callers {
		c.Close()
	}
	s.AwaitHealth("web", s.up, "UNHEALTHY") // by a new connection
	envoy.Eventually(t, fleet.Patience, "the outage to be recorded", func() bool { return len(s.Transitions("web")) == 3 })
}

// TestLittleMemory: the runtime is told to keep below what hdsd needs for the messages
// that it gets. It is slower then, and harms nothing.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	s, _ := newSiteUnder(t, "export GOMEMLIMIT=48MiB")
	s.under(t, s.largeMessages)
}
