package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/config"
	"hdsd/health"
)

const smallFleet = `
checkers:
- {id: big, locality: {region: eu, zone: a}, version: envoy/1.40.0, weight: 2}
- {id: b, locality: {region: eu, zone: b}, version: envoy/1.39.0}
- {id: c, locality: {region: eu, zone: c}, version: hdsd}
clusters:
- name: web
  count: 2
  endpoints: 10
  localities: [{region: eu, zone: a}]
  health_checks:
  - {timeout: 1s, interval: 0.5s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}
- name: redis
  endpoints: 4
  health_checks:
  - {timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, custom_health_check: {name: envoy.health_checkers.redis, typed_config: {"@type": type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis}}}
- {name: bare, endpoints: 3}
data_planes: [{count: 50}]
`

// simulateFiles runs simulate on files with these contents.
func simulateFiles(t *testing.T, clusters, fleet string, args ...string) (status int, out, errors string) {
	t.Helper()
	dir := folder(t, map[string]string{"hdsd.yaml": goodConfig, "clusters.yaml": clusters, "fleet.yaml": fleet})
	args = append([]string{"simulate", "-c", filepath.Join(dir, "hdsd.yaml"), "--fleet", filepath.Join(dir, "fleet.yaml")}, args...)
	status, out, errors = hdsd(t, args...)
	return status, out, strings.ReplaceAll(errors, dir+string(filepath.Separator), "")
}

// Every checker of this fleet has all that it can check, so that the figures
// stay whatever the planner's ways.
func TestSimulateShows(t *testing.T) {
	for format, took := range map[string]string{"table": `planned in [0-9.]+[µnm]?s \(digest [0-9a-f]{16}\)`, "json": `"seconds":[0-9.e-]+,"digest":"[0-9a-f]{16}"`} {
		status, out, errors := simulateFiles(t, "resources: []", smallFleet, "-o", format)
		if status != exitDone || errors != "" {
			t.Errorf("-o %s: exit status %d, %s", format, status, errors)
		}
		if !regexp.MustCompile(took).MatchString(out) {
			t.Errorf("-o %s does not say %s:\n%s", format, took, out)
		}
		golden(t, "simulate."+format, regexp.MustCompile(took).ReplaceAllString(out, "PLANNED"))
		if format == "json" && !json.Valid([]byte(out)) {
			t.Errorf("not JSON: %s", out)
		}
	}
}

// TestSimulateTheExample: docs/guides/simulate.md shows what comes out of the example,
// but for how long it took.
func TestSimulateTheExample(t *testing.T) {
	const path, args = "../../docs/guides/simulate.md", "simulate -c examples/hdsd.yaml --fleet examples/fleet.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), "$ hdsd "+args+"\n")
	shown, tail, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("%s does not show what 'hdsd %s' prints", path, args)
	}
	status, out, errors := hdsd(t, strings.Fields(strings.ReplaceAll(args, "examples/", "../../examples/"))...)
	if status != exitDone || errors != "" {
		t.Fatalf("exit status %d\n%s%s", status, out, errors)
	}
	took := regexp.MustCompile(`planned in [0-9.]+[µnm]?s`)
	out = took.ReplaceAllLiteralString(out, took.FindString(shown))
	if *update {
		if err := os.WriteFile(path, []byte(head+"$ hdsd "+args+"\n"+out+"```"+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(shown, out); diff != "" {
		t.Errorf("%s shows something else (-shown +got); -update takes it over:\n%s", path, diff)
	}
}

func TestSimulateSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ clusters, fleet, want string }{
		"fleet":   {"resources: []", "chekers: []", "fleet.yaml:1: chekers: "},
		"node":    {"resources: []", "checkers:\n- {id: \"a\\0b\", version: hdsd}", "fleet.yaml:2: checkers[0].id: "},
		"sources": {"resources: [", smallFleet, "clusters.yaml:1: "},
	} {
		status, out, errors := simulateFiles(t, test.clusters, test.fleet)
		if status != exitFailed || out != "" || !strings.HasPrefix(errors, test.want) {
			t.Errorf("%s: exit status %d, %s, says %q", name, status, out, errors)
		}
	}
	status, out, errors := simulateFiles(t, badClusters, smallFleet)
	if status != exitDone || !strings.Contains(out, "conect_timeout") || !strings.Contains(errors, "1 problems, and the plan leaves out what is bad: 'hdsd validate -c ") {
		t.Errorf("with a bad cluster: exit status %d, %s%s", status, out, errors)
	}
}

func TestCheckersOfAFleetMatchTheirIntroduction(t *testing.T) {
	dir := folder(t, map[string]string{"fleet.yaml": `checkers:
- {id: new, version: envoy/1.40.1, metadata: {vpc: blue}, weight: 2}
- {id: old, version: envoy/1.36}
- {id: lacking, version: envoy/1.40.0, without: [GRPC, REDIS, THRIFT, TLS]}
- {id: own, count: 2, version: hdsd, locality: {region: eu, zone: a, sub_zone: r1}}
`})
	fleet, problems := config.LoadFleet(filepath.Join(dir, "fleet.yaml"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all, problems := checkersOf(fleet)
	if len(problems) > 0 || len(all) != 5 {
		t.Fatalf("%v, %v", all, problems)
	}
	tls := health.Ability("envoy.transport_sockets.tls")
	for i, want := range []struct {
		id, version string
		can, cannot []health.Ability
	}{
		{"new", "envoy/1.40.1", []health.Ability{health.HTTP, health.TCP, health.GRPC, health.Redis, health.Thrift, tls, health.SeveralChecks}, nil},
		{"old", "envoy/1.36", []health.Ability{health.HTTP, health.TCP, health.Thrift, tls}, []health.Ability{health.GRPC, health.Redis, health.SeveralChecks}},
		{"lacking", "envoy/1.40.0", []health.Ability{health.HTTP, health.TCP}, []health.Ability{health.GRPC, health.Redis, health.Thrift, tls}},
		{"own-1", "hdsd/", []health.Ability{health.HTTP, health.TCP, health.GRPC, health.Redis, tls, health.SeveralChecks}, []health.Ability{health.Thrift}},
		{"own-2", "hdsd/", []health.Ability{health.HTTP}, nil},
	} {
		k := all[i]
		if k.ID != want.id || !strings.HasPrefix(k.Version, want.version) || !k.Abilities.Has(want.can...) {
			t.Errorf("got %+v, want %+v", k, want)
		}
		for _, ability := range want.cannot {
			if k.Abilities.Has(ability) {
				t.Errorf("%s can %s", k.ID, ability)
			}
		}
	}
	if k := all[0]; k.Weight != 2 || k.Metadata["vpc"] != "blue" {
		t.Errorf("got %+v", k)
	}
	if at := all[4].Locality; at != (health.Locality{Region: "eu", Zone: "a", SubZone: "r1"}) {
		t.Errorf("own-2 is at %v", at)
	}
}
