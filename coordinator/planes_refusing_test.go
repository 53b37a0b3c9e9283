package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestRefusingDataPlanesNeedAttention covers a data plane that refuses a response: it needs attention until
// it accepts a replacement or ends, with and without the relay. It moves hdsd_data_planes_refusing.
func TestRefusingDataPlanesNeedAttention(t *testing.T) {
	t.Parallel()
	for _, relayed := range []bool{false, true} {
		bothVariants(t, func(t *testing.T, delta bool) {
			h := newHook(t)
			address, status := upstream(t)
			text, clusters := quick, static("web", address)
			if relayed {
				m := newManagement(t)
				m.come()
				m.says(byEDS("web"), endpoints("web", corev3.HealthStatus_UNKNOWN, address))
				text, clusters = relaying(m, ""), ""
			}
			s := newSite(t, t.TempDir(), text+"notify: [{name: oncall, webhook: {url: "+h.URL+"}, kinds: [DATA_PLANES_REFUSING]}]\n", clusters)
			s.ready()
			s.checker("c1")
			var refuses atomic.Bool
			c := s.newClient(delta, "edge-1")
			c.refuses = func(h *heard) string {
				if refuses.Load() && h.typeURL == resourcev3.EndpointType {
					return "no such field"
				}
				return ""
			}
			c.talker.ask(resourcev3.ClusterType, nil, nil)
			c.talker.ask(resourcev3.EndpointType, []string{"web"}, nil)
			go c.run()
			s.eventually("health", func() bool { return c.health("web") == "HEALTHY" })
			want := func(when string, refusing bool) {
				t.Helper()
				count, state, text := 0, "resolved", ""
				if refusing {
					count, state, text = 1, "firing", "data plane edge-1 refuses a ClusterLoadAssignment, and keeps what it had: no such field"
				}
				s.eventually(when, func() bool {
					answer, err := hdsdv1.NewQueryClient(s.dial()).GetStatus(t.Context(), &hdsdv1.GetStatusRequest{})
					return err == nil && strings.Join(s.needing("DATA_PLANES_REFUSING"), "") == text && s.scrape().sum("hdsd_data_planes_refusing") == float64(count) &&
						answer.GetDataPlanes().GetRefusing() == uint32(count) && h.has(state+" DATA_PLANES_REFUSING")
				})
				h.forget()
			}
			flip := func(bad bool, code int32) {
				refuses.Store(bad)
				status.Store(code)
			}
			flip(true, http.StatusServiceUnavailable)
			want(fmt.Sprintf("a refusal, relayed %t", relayed), true)
			s.recorded("web", address, "UNHEALTHY") // the refused response may be another one, before it
			flip(false, http.StatusOK)
			want("what replaces it", false)
			flip(true, http.StatusServiceUnavailable)
			want("another refusal", true)
			c.stop()
			want("the end of the client", false)
		})
	}
}
