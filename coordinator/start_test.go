package coordinator_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hdsd/coordinator"
)

// TestStartIsLogged covers the configuration and the restored state.
func TestStartIsLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address, _ := upstream(t)
	s := newSite(t, dir, quick, static("web", address)+static("api", address))
	s.ready()
	s.checker("c1")
	s.eventually("two healthy endpoints", func() bool { return s.healthOf("web", address) == "HEALTHY" && s.healthOf("api", address) == "HEALTHY" })
	s.stopped()

	var log strings.Builder
	built, err := coordinator.New(t.Context(), configuration(t, dir, quick, static("web", address)), coordinator.Options{Log: zerolog.New(&log), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it ends as soon as it has begun
	if err := built.Run(ctx); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Event, Version             string
		Files                      []string
		Clusters, Endpoints        int
		RestoredEndpoints          int `json:"restored_endpoints"`
		RestoredCheckers           int `json:"restored_checkers"`
		Overrides, Frozen, DataDir any
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"event":"started"`) {
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got.Version != "1.2.3" || got.Clusters != 1 || got.Endpoints != 1 || got.RestoredEndpoints != 2 || got.RestoredCheckers != 1 || !slices.Equal(got.Files, []string{dir + "/clusters.yaml"}) {
		t.Errorf("%+v in %s", got, log.String())
	}
}
