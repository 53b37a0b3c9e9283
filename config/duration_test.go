package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/config"
)

// Every duration of the file may be as people write it: in messages, in lists, and in
// Envoy's messages.
func TestDurationsAsPeopleWriteThem(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "clusters.yaml", "resources: []\n")
	const sources = "sources:\n- {name: a, config_source: {path_config_source: {path: clusters.yaml}}}\n"
	load := func(text string) (*config.Config, []config.Problem) {
		path := filepath.Join(folder, "hdsd.yaml")
		if err := os.WriteFile(path, []byte(sources+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(path)
	}
	cfg, problems := load(`
history: {retention: 90d}
grpc: {max_connection_age: 1h30m}
checkers: {probation: 1m}
default_health_checks:
- cluster_name_glob: "*"
  health_checks:
  - {interval: 500ms, timeout: 250ms, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}
`)
	if cfg == nil {
		t.Fatal(problems)
	}
	check := cfg.GetDefaultHealthChecks()[0].GetHealthChecks()[0]
	for name, of := range map[string]struct{ got, want time.Duration }{
		"retention": {cfg.GetHistory().GetRetention().AsDuration(), 90 * 24 * time.Hour},
		"age":       {cfg.GetGrpc().GetMaxConnectionAge().AsDuration(), 90 * time.Minute},
		"probation": {cfg.GetCheckers().GetProbation().AsDuration(), time.Minute},
		"interval":  {check.GetInterval().AsDuration(), 500 * time.Millisecond},
		"timeout":   {check.GetTimeout().AsDuration(), 250 * time.Millisecond},
	} {
		if of.got != of.want {
			t.Errorf("%s: got %v, want %v", name, of.got, of.want)
		}
	}
	for text, want := range map[string]string{
		"1.5": `write 1.5s`, `"1.5"`: `write 1.5s`, `""`: "is empty", "-1d": "is negative", "-1s": "is -1s: from 1s", "1y": `unknown unit "y"`,
		"200000d": "is too long", "{seconds: 5}": "not a mapping",
	} {
		if _, problems := load("history: {retention: " + text + "}\n"); len(problems) != 1 || !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: got %v, want %s", text, problems, want)
		}
	}
}
