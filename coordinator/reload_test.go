package coordinator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

// shelf is a running coordinator with a file of clusters.
type shelf struct {
	*Coordinator
	t    *testing.T
	path string
}

func newShelf(t *testing.T, names ...string) *shelf {
	t.Helper()
	s := &shelf{t: t, path: filepath.Join(t.TempDir(), "clusters.yaml")}
	s.move(names...)
	built, err := New(t.Context(), s.configured("clusters.yaml"), Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	s.Coordinator = built
	ended := make(chan error, 1)
	go func() { ended <- built.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := built.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.eventually(names...)
	return s
}

// configured is the configuration with a file beside the clusters as its source.
func (s *shelf) configured(file string) *configv1.Config {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.path), "hdsd.yaml")
	text := `
grpc: {address: "127.0.0.1:0"}
http: {address: "127.0.0.1:0"}
sources: [{name: local, config_source: {path_config_source: {path: ` + file + "}}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c, problems := config.Load(path)
	if len(problems) > 0 {
		s.t.Fatal(problems)
	}
	return c
}

// move puts a file with clusters of these names in place.
func (s *shelf) move(names ...string) {
	s.t.Helper()
	text := "static_resources: {clusters: [{name: " + strings.Join(names, "}, {name: ") + "}]}\n"
	if err := os.WriteFile(s.path+".new", []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		s.t.Fatal(err)
	}
}

// clusters are the names of those that the core has now.
func (s *shelf) clusters() (names []string) {
	s.t.Helper()
	if err := s.core.inspect(s.t.Context(), func() { names = slices.Clone(s.core.Rulings.Names()) }); err != nil {
		s.t.Fatal(err)
	}
	return names
}

// eventually waits until there are just these clusters.
func (s *shelf) eventually(names ...string) {
	s.t.Helper()
	deadline, tick := time.NewTimer(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !slices.Equal(s.clusters(), names) {
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("there are %v, want %v", s.clusters(), names)
		}
	}
}

// TestReloadIgnoresFieldsOfRestart covers the values that hdsd derives from such a field.
func TestReloadIgnoresFieldsOfRestart(t *testing.T) {
	s := newShelf(t, "a")
	next := s.configured("clusters.yaml")
	next.Reporting.Interval = durationpb.New(time.Minute)
	next.Policies = []*configv1.Policy{{ClusterNameGlob: "a", Verdict: &configv1.Verdict{Doubt: &configv1.Doubt{Share: 0.9}}}}
	restart, err := s.Reload(next)
	if err != nil || !slices.Equal(restart, []string{"reporting.interval"}) {
		t.Errorf("Reload: %v, %v", restart, err)
	}
	var trust, want aggregate.BeliefLimits
	if err := s.core.inspect(t.Context(), func() {
		trust = s.core.Rules.For(&source.Cluster{Name: "a"}).Rule.Limits
		want = catalog.WithDefaults(trust, s.core.Timing.Report)
	}); err != nil {
		t.Fatal(err)
	}
	if trust.Doubt.Share != 0.9 {
		t.Error("the policy is not in force")
	}
	if longest := aggregate.DefaultStaleness(s.core.Timing.Report); trust.Staleness != longest || want.Staleness != longest {
		t.Errorf("votes are stale after %s, want %s", trust.Staleness, longest)
	}
}
