package yamlpb

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestAnUnknownKindIsAnsweredByThoseThereAre, where it is no typo of one.
func TestAnUnknownKindIsAnsweredByThoseThereAre(t *testing.T) {
	fields := new(corev3.HealthCheck).ProtoReflect().Descriptor().Fields()
	for have, want := range map[string]string{
		"icmp_health_check": ": it has http_health_check, tcp_health_check, grpc_health_check, custom_health_check",
		"tpc_health_check":  ": did you mean tcp_health_check?",
		"retries":           "",
	} {
		if got := suggestField(have, fields); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s%s, want %s", have, got, want)
		}
	}
}
