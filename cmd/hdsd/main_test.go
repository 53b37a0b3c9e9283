package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// serveVariable names the configuration of hdsd serve. A test process with it is hdsd serve.
const serveVariable = "HDSD_TEST_SERVE"

// TestMain checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) {
	if path := os.Getenv(serveVariable); path != "" {
		os.Exit(serveUntilEOF(path))
	}
	for _, name := range []string{"HDSD_SERVER", "HDSD_TLS_CA", "HDSD_TLS_CERT", "HDSD_TLS_KEY", "HDSD_TOKEN", "COLUMNS", "PAGER", "LESS"} {
		os.Unsetenv(name)
	}
	os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // no contexts
	time.Local = time.UTC
	now = func() time.Time { return noon.Add(5*time.Minute + 7*time.Second) }
	completionTimeout = time.Minute // a busy machine takes longer than a shell waits
	goleak.VerifyTestMain(m)
}

// hdsd runs a command.
func hdsd(t *testing.T, args ...string) (status int, out, errors string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), args, &o, &e)
	return status, o.String(), e.String()
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update takes it over:\n%s", path, diff)
	}
}

func TestHelpOfEachCommand(t *testing.T) {
	paths := commandPaths(newRoot(io.Discard, io.Discard))
	if len(paths) < 15 {
		t.Fatalf("only %v are there", paths)
	}
	for _, path := range paths {
		status, out, errors := hdsd(t, append(path[1:], "--help")...)
		if status != exitDone || errors != "" {
			t.Errorf("%v --help: exit status %d, %s", path, status, errors)
		}
		path[0] = "help"
		golden(t, strings.Join(path, "-")+".txt", out)
	}
}

// commandPaths lists a command and all below it, but for cobra's own words.
func commandPaths(command *cobra.Command) [][]string {
	if command.Name() == "completion" {
		return nil
	}
	paths := [][]string{strings.Fields(command.CommandPath())}
	for _, child := range command.Commands() {
		paths = append(paths, commandPaths(child)...)
	}
	return paths
}

func TestWhatCommandsShow(t *testing.T) {
	address := serveFake(t, newFake())
	for _, name := range []string{"endpoints", "history", "incidents", "availability", "watch", "clusters", "checkers", "clients"} {
		for _, format := range []string{"table", "wide", "json", "csv"} {
			status, out, errors := hdsd(t, name, "--server", address, "-o", format)
			if status != exitDone || errors != "" {
				t.Errorf("%s -o %s: exit status %d, %s", name, format, status, errors)
			}
			golden(t, name+"."+format, out)
			for line := range strings.Lines(out) {
				if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
					t.Errorf("%s -o %s: a line ends with spaces: %q", name, format, line)
				}
			}
		}
	}
}

func TestWrongUsage(t *testing.T) {
	cases := map[string]string{ // what is said
		"nonsense":                                   `no command "nonsense"`,
		"endpoint":                                   "did you mean endpoints?",
		"endpoints --nope":                           "unknown flag: --nope\nUsage: hdsd endpoints [CLUSTER [ADDRESS]] [flags] (see 'hdsd endpoints --help')",
		"endpoints a b c":                            "at most 2",
		"endpoints -o xml":                           "want table, wide, json or csv",
		"endpoints --limit -1":                       "--limit -1",
		"endpoints --limit many":                     "--limit",
		"endpoints --health SICK":                    "UNKNOWN, HEALTHY",
		"endpoints --tls-cert x":                     "--tls-ca",
		"clusters web":                               "web",
		"history --since yesterday":                  "--since",
		"history --since -1h":                        "--since",
		"history --since 1h --until 2h":              "--since 1h is after --until 2h: exchange the two",
		"availability --since 1h --until 2h":         "--since 1h is after --until 2h: exchange the two",
		"endpoints --as-of then":                     "--as-of",
		"watch a b c":                                "at most 2",
		"watch -o xml":                               "want table, wide, json or csv",
		"availability a b c":                         "at most 2",
		"availability --since 1y":                    "--since",
		"availability --until then":                  "--until",
		"clients dp-1":                               "dp-1",
		"history --until 25:00":                      "--until",
		"serve":                                      "--config FILE is missing",
		"validate":                                   "--config FILE is missing",
		"simulate":                                   "--config FILE is missing",
		"simulate -c x":                              "--fleet FILE is missing",
		"simulate -c x --fleet y -o csv":             "want table or json",
		"simulate -c x --fleet y --color blue":       "want auto, always or never",
		"simulate fleet.yaml":                        "takes no arguments",
		"validate hdsd.yaml":                         "did you mean -c hdsd.yaml?",
		"serve -c x --log-level loud":                "--log-level",
		"serve -c x --log-format loud":               "--log-format",
		"check --log-level loud":                     "--log-level",
		"check --zone":                               "--zone",
		"completion":                                 "name a shell",
		"completion csh":                             "name a shell",
		"version 2":                                  "2",
		"endpoints --color blue":                     "want auto, always or never",
		"endpoints --tls-server-name x":              "--tls-ca",
		"bootstrap":                                  "checker or client",
		"bootstrap server":                           "checker or client",
		"bootstrap checker x":                        "x",
		"bootstrap checker -o table":                 "want yaml or json",
		"bootstrap checker --server x":               "want HOST:PORT",
		"bootstrap checker --admin x":                "admin address",
		"bootstrap client --tls-cert x":              "authorities to trust",
		"bootstrap client --route web --listen here": "listener",
		"bootstrap client --listen 10.0.0.1:80":      "--listen does nothing without --route",
		"man":                                        "1 arg",
		"endpoints --server 10.0.0.5":                "want HOST:PORT",
		"endpoints --server bad://x:%y":              "--server",
		"check --server bad":                         "want HOST:PORT",
		"check --server bad:":                        "want HOST:PORT",
	}
	for line, want := range cases {
		status, out, errors := hdsd(t, strings.Fields(line)...)
		if status != exitUsage || out != "" {
			t.Errorf("hdsd %s: exit status %d, %s", line, status, out)
		}
		if strings.Count(errors, "\n") != 2 || !strings.Contains(errors, want) || !strings.Contains(errors, "\nUsage: hdsd") || !strings.Contains(errors, "--help'") {
			t.Errorf("hdsd %s says %q, want a line with %q and one with the usage", line, errors, want)
		}
	}
}

func TestServerFromTheEnvironment(t *testing.T) {
	t.Setenv("HDSD_SERVER", serveFake(t, newFake()))
	if status, out, errors := hdsd(t, "clusters", "-o", "csv"); status != exitDone || !strings.Contains(out, "plain") {
		t.Errorf("exit status %d, %s%s", status, out, errors)
	}
}

func TestLimitHoldsOverPages(t *testing.T) {
	for limit, want := range map[string]int{"0": 3, "1": 1, "2": 2, "3": 3, "99": 3} {
		f := newFake()
		status, out, errors := hdsd(t, "endpoints", "--server", serveFake(t, f), "-o", "json", "--limit", limit)
		if lines := strings.Count(out, "\n"); status != exitDone || lines != want {
			t.Errorf("--limit %s: exit status %d, %d lines, want %d; %s", limit, status, lines, want, errors)
		}
		if want < 3 && len(f.asked) > 1 {
			t.Errorf("--limit %s asked for %d pages", limit, len(f.asked))
		}
	}
}

func TestFiltersAreAskedFor(t *testing.T) {
	f := newFake()
	address := serveFake(t, f)
	if status, _, errors := hdsd(t, "endpoints", "web", "10.0.0.2:8080", "--health", "unhealthy", "--as-of", "2026-01-02T12:00:00Z", "--server", address); status != exitDone {
		t.Fatal(errors)
	}
	if r := f.asked[0]; r.GetCluster() != "web" || r.GetAddress() != "10.0.0.2:8080" || r.GetHealth().String() != "UNHEALTHY" || !r.GetAsOf().AsTime().Equal(noon.Truncate(time.Second)) {
		t.Errorf("asked for %v", r)
	}
	if status, _, errors := hdsd(t, "incidents", "web", "--open", "--since", "2026-01-01T00:00:00Z", "--server", address); status != exitDone {
		t.Fatal(errors)
	}
	if r := f.incidents[0]; r.GetCluster() != "web" || !r.GetOpen() || !r.GetStartTime().AsTime().Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("asked for %v", r)
	}
	ask := func(args ...string) *hdsdv1.ListTransitionsRequest {
		if status, _, errors := hdsd(t, append([]string{"history", "--server", address}, args...)...); status != exitDone {
			t.Fatal(errors)
		}
		return f.transitions[len(f.transitions)-1]
	}
	if r := ask(); r.GetStartTime() != nil || r.GetEndTime() != nil || r.GetNewestFirst() {
		t.Errorf("without flags asked for %v", r)
	}
	r := ask("web", "--newest-first", "--since", "7d", "--until", "2026-01-02T15:04:05.5+01:00")
	ago := now().Sub(r.GetStartTime().AsTime())
	if ago != 7*24*time.Hour || !r.GetNewestFirst() || r.GetCluster() != "web" ||
		!r.GetEndTime().AsTime().Equal(time.Date(2026, 1, 2, 14, 4, 5, 500_000_000, time.UTC)) {
		t.Errorf("asked for %v", r)
	}
}

func TestAvailabilityOfAPeriod(t *testing.T) {
	f := newFake()
	status, _, errors := hdsd(t, "availability", "web", "10.0.0.1:8080", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z", "--by", "zone", "--slo", "99%", "--server", serveFake(t, f))
	if status != exitDone || len(f.periods) != 1 {
		t.Fatal(errors)
	}
	if r := f.periods[0]; r.GetCluster() != "web" || r.GetAddress() != "10.0.0.1:8080" || r.GetBy() != "zone" || r.GetSlo() != "99%" || r.GetEndTime().AsTime().Sub(r.GetStartTime().AsTime()) != 24*time.Hour {
		t.Errorf("asked for %v", r)
	}
}

func TestParseTime(t *testing.T) {
	noon := noon.In(time.FixedZone("elsewhere", 5*3600+1800))
	for text, want := range map[string]time.Time{
		"1h": noon.Add(-time.Hour), "90s": noon.Add(-90 * time.Second), "0s": noon, "2d": noon.Add(-48 * time.Hour), "1w1.5d": noon.Add(-204 * time.Hour),
		"2026-01-02T03:04:05Z":   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02":             time.Date(2026, 1, 1, 18, 30, 0, 0, time.UTC),
		"00:01":                  time.Date(2026, 1, 1, 18, 31, 0, 0, time.UTC),
		"18:03:25.486":           time.Date(2026, 1, 2, 12, 33, 25, 486_000_000, time.UTC),
		"Jan 01 18:03:25.486":    time.Date(2026, 1, 1, 12, 33, 25, 486_000_000, time.UTC),
		"2026-01-02T03:04Z":      time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
		"2026-01-02T03:04+01:00": time.Date(2026, 1, 2, 2, 4, 0, 0, time.UTC),
		"2025-12-31T18:03":       time.Date(2025, 12, 31, 12, 33, 0, 0, time.UTC),
		"2025-12-31 18:03":       time.Date(2025, 12, 31, 12, 33, 0, 0, time.UTC),
	} {
		if got, err := parseTime("since", text, noon); err != nil || !got.AsTime().Equal(want) {
			t.Errorf("%s: %v, %v", text, got.AsTime(), err)
		}
	}
	for _, text := range []string{"-1h", "1y", "d", "-2d", "1.5", "2026-13-02", "999999d", "noon", "24:01", "Feb 30"} {
		if _, err := parseTime("since", text, noon); err == nil {
			t.Errorf("%q is taken for a time", text)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if status, out, _ := hdsd(t, "version"); status != exitDone || !strings.HasPrefix(out, "hdsd dev") {
		t.Errorf("version: exit status %d, %s", status, out)
	} else if status, same, _ := hdsd(t, "--version"); status != exitDone || same != out {
		t.Errorf("--version: exit status %d, %s", status, same)
	}
	var told struct{ Version, Go, Platform string }
	if status, out, _ := hdsd(t, "version", "-o", "json"); status != exitDone || json.Unmarshal([]byte(out), &told) != nil || told.Version != "dev" || told.Go == "" || told.Platform == "" {
		t.Errorf("version -o json: exit status %d, %s", status, out)
	}
	if status, _, errors := hdsd(t, "version", "-o", "csv"); status != exitUsage || !strings.Contains(errors, "want text or json") {
		t.Errorf("version -o csv: exit status %d, %s", status, errors)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, _ := hdsd(t, "completion", shell); status != exitDone || !strings.Contains(out, "hdsd") {
			t.Errorf("completion %s: exit status %d, %d bytes", shell, status, len(out))
		}
	}
}
