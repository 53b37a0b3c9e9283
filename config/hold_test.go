package config_test

import (
	"strings"
	"testing"
	"time"

	"hdsd/config"
)

const managed = `sources: [{name: mesh, config_source: {api_config_source: {api_type: DELTA_GRPC, transport_api_version: V3, grpc_services: [{google_grpc: {target_uri: "127.0.0.1:1", stat_prefix: x}}]}}%}]`

func TestHoldShrinkage(t *testing.T) {
	file := "sources: [{name: local, config_source: {path_config_source: {path: x.yaml}}%}]"
	for text, want := range map[string]struct {
		share float64
		long  time.Duration
	}{
		file:    {0, 0},
		managed: {0.5, 5 * time.Minute},
		strings.Replace(file, "%", ", hold_shrinkage: {}", 1):               {0.5, 5 * time.Minute},
		strings.Replace(file, "%", ", hold_shrinkage: {for: 2s}", 1):        {0.5, 2 * time.Second},
		strings.Replace(managed, "%", ", hold_shrinkage: {share: 0.25}", 1): {0.25, 5 * time.Minute},
		strings.Replace(managed, "%", ", hold_shrinkage: {share: 1}", 1):    {1, 5 * time.Minute},
	} {
		c, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", strings.Replace(text, "%", "", 1)))
		if c == nil {
			t.Fatalf("%s: %v", text, problems)
		}
		h := c.GetSources()[0].GetHoldShrinkage()
		if h.GetShare() != want.share || h.GetFor().AsDuration() != want.long {
			t.Errorf("%s: %v", text, h)
		}
	}
	for more, want := range map[string]string{
		"{share: 0}":   "above 0",
		"{share: -1}":  "above 0",
		"{share: 1.5}": "up to 1",
		"{share: NaN}": "up to 1",
		"{for: 0s}":    "sources[0].hold_shrinkage.for",
		"{for: 25h}":   "sources[0].hold_shrinkage.for",
	} {
		_, problems := config.Load(write(t, t.TempDir(), "hdsd.yaml", strings.Replace(managed, "%", ", hold_shrinkage: "+more, 1)))
		found := false
		for _, p := range problems {
			found = found || strings.Contains(p.String(), want) && strings.Contains(p.String(), "hold_shrinkage")
		}
		if !found {
			t.Errorf("%s: %v", more, problems)
		}
	}
}
