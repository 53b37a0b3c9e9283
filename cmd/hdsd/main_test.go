package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// No test leaves a goroutine behind.
func TestMain(m *testing.M) {
	os.Unsetenv("HDSD_SERVER")
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
	names := []string{"help"}
	for _, command := range newRoot(io.Discard, io.Discard).Commands() {
		if command.Name() != "completion" { // cobra's own words
			names = append(names, command.Name())
		}
	}
	if len(names) < 10 {
		t.Fatalf("only %v are there", names)
	}
	for _, name := range names {
		args := []string{name, "--help"}
		if name == "help" {
			args = args[1:]
		}
		status, out, errors := hdsd(t, args...)
		if status != exitDone || errors != "" {
			t.Errorf("%s --help: exit status %d, %s", name, status, errors)
		}
		golden(t, "help-"+name+".txt", out)
	}
}

func TestWhatCommandsShow(t *testing.T) {
	address := serveFake(t, newFake())
	for _, name := range []string{"endpoints", "history", "availability", "watch", "clusters", "checkers", "clients"} {
		for _, format := range []string{"table", "json", "csv"} {
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
		"nonsense":                      `no command "nonsense"`,
		"endpoint":                      "did you mean endpoints?",
		"endpoints --nope":              "unknown flag: --nope; see 'hdsd endpoints --help'",
		"endpoints a b c":               "at most 2",
		"endpoints -o xml":              "want table, json or csv",
		"endpoints --limit -1":          "--limit -1",
		"endpoints --limit many":        "--limit",
		"endpoints --health SICK":       "UNKNOWN, HEALTHY",
		"endpoints --tls-cert x":        "--tls-ca",
		"clusters web":                  "web",
		"history --since yesterday":     "--since",
		"history --since -1h":           "--since",
		"endpoints --as-of then":        "--as-of",
		"watch a b c":                   "at most 2",
		"watch -o xml":                  "want table, json or csv",
		"availability a b c":            "at most 2",
		"availability --since 1w":       "--since",
		"availability --until then":     "--until",
		"clients dp-1":                  "dp-1",
		"history --until 25:00":         "--until",
		"serve":                         "--config FILE is missing",
		"validate":                      "--config FILE is missing",
		"serve -c x --log-level loud":   "--log-level",
		"serve -c x --log-format loud":  "--log-format",
		"check --log-level loud":        "--log-level",
		"check --zone":                  "--zone",
		"completion":                    "name a shell",
		"completion csh":                "name a shell",
		"version 2":                     "2",
		"endpoints --server bad://x:%y": "--server",
	}
	for line, want := range cases {
		status, out, errors := hdsd(t, strings.Fields(line)...)
		if status != exitUsage || out != "" {
			t.Errorf("hdsd %s: exit status %d, %s", line, status, out)
		}
		if strings.Count(errors, "\n") != 1 || !strings.Contains(errors, want) || !strings.Contains(errors, "--help'") {
			t.Errorf("hdsd %s says %q, want one line with %q", line, errors, want)
		}
	}
}

func TestWhatGoesWrongAtTheCoordinator(t *testing.T) {
	status, out, errors := hdsd(t, "endpoints", "--server", "127.0.0.1:1")
	if status != exitFailed || out != "" || !strings.Contains(errors, "is 'hdsd serve' running there?") {
		t.Errorf("nobody there: exit status %d, %s%s", status, out, errors)
	}
	address := serveFake(t, newFake())
	status, out, errors = hdsd(t, "endpoints", "nowhere", "--server", address)
	if status != exitFailed || out != "" || errors != "hdsd: unknown cluster \"nowhere\"; 'hdsd clusters' lists the clusters\n" {
		t.Errorf("an unknown cluster: exit status %d, %s%s", status, out, errors)
	}
	status, _, errors = hdsd(t, "clusters", "--server", address, "--tls-ca", "testdata/none.pem")
	if status != exitFailed || !strings.Contains(errors, "--tls-ca: open testdata/none.pem") {
		t.Errorf("no such authorities: exit status %d, %s", status, errors)
	}
	f := newFake()
	f.failAfter = 1
	status, out, errors = hdsd(t, "endpoints", "--server", serveFake(t, f))
	if status != exitFailed || !strings.Contains(out, "10.0.0.2:8080") || !strings.Contains(errors, "stopping") {
		t.Errorf("stopping after a page: exit status %d, %s%s", status, out, errors)
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
	ago := time.Since(r.GetStartTime().AsTime())
	if ago < 7*24*time.Hour || ago > 7*24*time.Hour+time.Minute || !r.GetNewestFirst() || r.GetCluster() != "web" ||
		!r.GetEndTime().AsTime().Equal(time.Date(2026, 1, 2, 14, 4, 5, 500_000_000, time.UTC)) {
		t.Errorf("asked for %v", r)
	}
}

func TestAvailabilityOfATime(t *testing.T) {
	f := newFake()
	status, _, errors := hdsd(t, "availability", "web", "10.0.0.1:8080", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z", "--server", serveFake(t, f))
	if status != exitDone || len(f.periods) != 1 {
		t.Fatal(errors)
	}
	if r := f.periods[0]; r.GetCluster() != "web" || r.GetAddress() != "10.0.0.1:8080" || r.GetEndTime().AsTime().Sub(r.GetStartTime().AsTime()) != 24*time.Hour {
		t.Errorf("asked for %v", r)
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Time{
		"1h": noon.Add(-time.Hour), "90s": noon.Add(-90 * time.Second), "0s": noon, "2d": noon.Add(-48 * time.Hour),
		"2026-01-02T03:04:05Z": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		if got, err := parseTime("since", text, noon); err != nil || !got.AsTime().Equal(want) {
			t.Errorf("%s: %v, %v", text, got.AsTime(), err)
		}
	}
	for _, text := range []string{"-1h", "1w", "d", "-2d", "1.5d", "2026-01-02", "99999d", "noon"} {
		if _, err := parseTime("since", text, noon); err == nil {
			t.Errorf("%q is taken for a time", text)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if status, out, _ := hdsd(t, "version"); status != exitDone || !strings.HasPrefix(out, "hdsd dev") {
		t.Errorf("version: exit status %d, %s", status, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, _ := hdsd(t, "completion", shell); status != exitDone || !strings.Contains(out, "hdsd") {
			t.Errorf("completion %s: exit status %d, %d bytes", shell, status, len(out))
		}
	}
}

func TestATableOfManyRowsShowsWhatCameLate(t *testing.T) {
	var out bytes.Buffer
	p := newTable(&out, []string{"name", "note", "reason"})
	for i := range 3 * tableBlock {
		note := ""
		if i == 2*tableBlock+1 {
			note = "late"
		}
		if err := p.row(nil, []string{"x", note, "because"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if lines[0] != "NAME  REASON" || lines[1] != "x     because" {
		t.Errorf("begins with %q", lines[:2])
	}
	if again := lines[2*tableBlock+1]; again != "NAME  NOTE  REASON" {
		t.Errorf("where a column appears there is %q", again)
	}
	if !strings.Contains(out.String(), "x     late  because") || len(lines) != 3*tableBlock+3 {
		t.Errorf("%d lines", len(lines))
	}
	out.Reset()
	if err := newTable(&out, []string{"name", "note"}).close(); err != nil || out.String() != "NAME  NOTE\n" {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
}
