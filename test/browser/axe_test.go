package browser

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hdsd/test/upstream"
)

// axe is the script that finds what people cannot read or reach.
func axe(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = folder
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v: %s", err, said)
	}
	script, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// violations are what axe finds now.
func (b *browser) violations() []string {
	b.t.Helper()
	return do(b, chromedp.Evaluate[[]string](`axe.run().then(found => found.violations.map(
		one => one.id + ": " + one.nodes.slice(0, 3).map(node => node.html + ": " + node.failureSummary).join("; ")))`, chromedp.EvalAwaitPromise))
}

// TestAxeFindsNothing on any view, light and dark, while something is down; but it finds a
// planted fault.
func TestAxeFindsNothing(t *testing.T) {
	script := axe(t)
	c, server := site(t)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	tell(t, c, http.MethodPost, "/v1/overrides", `{"cluster": "web", "health": "UNHEALTHY", "reason": "new kernel"}`)
	b := open(t, c.HTTP, "/")
	do(b, chromedp.Evaluate[bool](script+";true"))
	for _, view := range []struct{ at, sign, press string }{
		{"#/", "CLUSTER_DOWN", ""},
		{"#/clusters/web", "1 of 1 endpoints, 1 down", ""},
		{"#/clusters/web/" + url.PathEscape(server.Addr()), "Overrides of the last hour", ""},
		{"#/incidents", "ongoing: 1 down", ""},
		{b.incident("web"), "Checkers that saw it", ""},
		{"#/checkers", "SYNCED", ""},
		{"#/clients", "new kernel", ""},
		{"#/clients", "new kernel", "Freeze"},
	} {
		do(b, chromedp.Evaluate[string]("location.hash = '"+view.at+"'"))
		b.shows(view.sign, true)
		if view.press != "" {
			b.press(view.press)
			b.until("a dialog", `document.querySelector("dialog[open]") !== null`)
		}
		for _, scheme := range []string{"light", "dark"} {
			features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
				t.Fatal(err)
			}
			if !do(b, chromedp.Evaluate[bool]("matchMedia('(prefers-color-scheme: "+scheme+")').matches")) {
				t.Fatalf("the page is not %s", scheme)
			}
			for _, found := range b.violations() {
				t.Errorf("%s, %s: %s", view.at, scheme, found)
			}
		}
	}
	b.press("Cancel")
	b.behaved()
	do(b, chromedp.Evaluate[bool]("document.querySelector('main').append(document.createElement('button')), true"))
	if len(b.violations()) == 0 {
		t.Error("axe does not find a button without a name")
	}
}
