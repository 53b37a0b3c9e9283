package fleet

import (
	"bufio"
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hdsd/test/envoy"
	"hdsd/test/etcd"
)

// TestTheDemoKeepsItsPromises with real Envoys and without, on 80 columns.
func TestTheDemoKeepsItsPromises(t *testing.T) {
	root, err := envoy.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args, says []string }{
		"Envoys":   {nil, []string{"three Envoys that check", "20 requests through the data plane, 0 failed"}},
		"built in": {[]string{"--no-envoy"}, []string{"three built-in checkers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			demo := exec.CommandContext(t.Context(), Plain(t), append([]string{"demo", "--once"}, c.args...)...)
			demo.Dir = root // where the Envoy is kept
			text, err := demo.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			for _, want := range append(c.says, "The page: http://127.0.0.1:", " is cut off from the network ──", "kill -9: the coordinator is gone ──", "now has it as DRAINING", "sends it to nobody: ", "every promise was kept.") {
				if !strings.Contains(strings.ReplaceAll(string(text), "\n", " "), want) {
					t.Errorf("says nothing like %q:\n%s", want, text)
				}
			}
			if got := strings.Count(string(text), "no change is recorded"); got != 3 {
				t.Errorf("%d of 3 times without a change:\n%s", got, text)
			}
			for line := range strings.Lines(string(text)) {
				if long := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); long > 80 && !strings.HasPrefix(line, "    ") || strings.Contains(line, "\x1b") {
					t.Errorf("%d columns, or a colour: %q", long, line)
				}
			}
		})
	}
}

// TestTheDemoPlaysReplicas with an etcd, of which one that leads is killed.
func TestTheDemoPlaysReplicas(t *testing.T) {
	t.Parallel()
	demo := exec.CommandContext(t.Context(), Plain(t), "demo", "--once", "--no-envoy", "--replicas", "3", "--etcd", etcd.Binary(t))
	text, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, want := range []string{
		", which leads, is gone ──", " leads\n", "each data plane of the other 2 replicas now has it as UNHEALTHY", ", which follows ──", " comes back ──",
		"hdsd-1, hdsd-2 and hdsd-3 have the same: ", " changes, and 2 orders", "every promise was kept.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), strings.TrimSpace(want)) {
			t.Errorf("says nothing like %q:\n%s", want, text)
		}
	}
	if got := strings.Count(string(text), "no change is recorded"); got != 2 {
		t.Errorf("%d of 2 times without a change:\n%s", got, text)
	}
}

// TestTheDemoLivesWithItsReaders: the README has them drain an endpoint while the demo runs.
// It must not take that for a broken promise, nor end.
func TestTheDemoLivesWithItsReaders(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	binary := Plain(t)
	demo := exec.CommandContext(ctx, binary, "demo", "--no-envoy")
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var text strings.Builder
	await := func(pattern string) string {
		for lines.Scan() {
			text.WriteString(lines.Text() + "\n")
			if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
				return found[len(found)-1]
			}
		}
		t.Fatalf("says nothing like %q:\n%s", pattern, text.String())
		return ""
	}
	override := func(args ...string) {
		t.Helper()
		if text, err := exec.CommandContext(ctx, binary, append([]string{"override"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	address := await("four upstreams: ([0-9.:]+),")
	server := await("gRPC ([0-9.:]+),")
	await("is cut off from the network")
	override("--server", server, "drain", "web", address, "--reason", "kernel upgrade", "--for", "10m", "--author", "ann")
	await("ann has given hdsd orders")
	await("An override of ann is in force")
	override("--server", server, "clear", "web", address)
	await("now has it as DRAINING")
	cancel()
	_ = demo.Wait()
}
