package coordinator_test

import (
	"strings"
	"testing"

	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestUnservedCalls covers the count by known service, and the log.
func TestUnservedCalls(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*site{"through the relay": withRelay(t), "without a relay": newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))} {
		s.ready()
		for _, call := range []string{"/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs", "/somebody.Else/Call", "/somebody.Other/Call"} {
			err := s.dial().Invoke(t.Context(), call, &loadstatsv3.LoadStatsRequest{}, &loadstatsv3.LoadStatsResponse{})
			if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), call) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", call, err)
			}
		}
		if got := s.scrape().sum("hdsd_grpc_unserved_calls_total"); got != 3 {
			t.Errorf("%v calls are counted", got)
		}
		if _, text := s.get("/metrics"); strings.Contains(text, "somebody") || !strings.Contains(text, `hdsd_grpc_unserved_calls_total{grpc_service="other"} 2`) {
			t.Error("a caller chooses labels of metrics")
		}
	}
}
