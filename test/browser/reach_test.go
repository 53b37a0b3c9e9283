package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// TestAClusterHasTheLastHour of each endpoint, drawn and in words.
func TestAClusterHasTheLastHour(t *testing.T) {
	c, server := site(t)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	server.Set(upstream.Healthy())
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	b := open(t, c.HTTP, "/#/clusters/web")
	b.until("the outage", `document.querySelectorAll('.row [aria-label^="Last hour: down"] .unhealthy').length === 1`)
	b.behaved()
}

// TestAnOverrideOfALocality in all clusters leaves other localities alone.
func TestAnOverrideOfALocality(t *testing.T) {
	c := fleet.Prepare(t, fleet.ClusterFile(
		fleet.StaticCluster("pay", fleet.CheckHTTP, []string{"127.0.0.1:1", "127.0.0.1:2"}), fleet.StaticCluster("web", fleet.CheckHTTP, []string{"127.0.0.1:3", "127.0.0.1:4"}),
	), fleet.FastReports)
	c.Start()
	b := open(t, c.HTTP, "/#/clients")
	b.press("Override the health of a locality")
	b.fill("reason", "zone b moves")
	for _, wrong := range []string{"", "//", "a/b/c/d"} {
		b.fill("locality", wrong)
		if do(b, chromedp.Evaluate[bool](`document.querySelector("dialog form").checkValidity()`)) {
			t.Errorf("%q is taken for a locality", wrong)
		}
	}
	b.fill("locality", "eu/b")
	b.press("Show what it does")
	b.shows("It sets 2 endpoints of 4 to DRAINING.", true)
	b.press("Override")
	for address, want := range map[string]string{"127.0.0.1:2": "DRAINING", "127.0.0.1:1": "UNKNOWN"} {
		c.AwaitHealth("pay", address, want)
	}
	c.AwaitHealth("web", "127.0.0.1:4", "DRAINING")
	b.shows("eu/b", true)
	b.behaved()
}

// TestByKeyboard: from the overview to an endpoint and its override, without a mouse.
func TestByKeyboard(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/")
	b.shows("1 of 1 cluster, worst first", true)
	b.goTo(`document.activeElement.matches('.row a[href="#/clusters/web"]')`)
	b.key("Enter", 13)
	b.shows(server.Addr(), true)
	b.goTo(fmt.Sprintf(`document.activeElement.matches(".row a") && document.activeElement.innerText === %q`, server.Addr()))
	b.key("Enter", 13)
	b.shows("Last 30 days", true)
	b.goTo(`document.activeElement.matches("button") && document.activeElement.innerText === "Override"`)
	b.key("Enter", 13)
	b.until("the dialog", `document.querySelector("dialog[open]")?.contains(document.activeElement) === true`)
	b.key("Escape", 27)
	b.until("the dialog to close", `document.querySelector("dialog") === null`)
	b.behaved()
}

// key presses a key.
func (b *browser) key(name string, code int64) {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeChar, input.DispatchKeyEventTypeKeyUp} {
		event := input.DispatchKeyEventParams{Type: kind, Key: name, Code: name, WindowsVirtualKeyCode: code}
		if kind == input.DispatchKeyEventTypeChar {
			if name != "Enter" {
				continue
			}
			event.Text = "\r"
		}
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, event); err != nil {
			b.t.Fatal(err)
		}
	}
}

// goTo presses Tab until an expression holds.
func (b *browser) goTo(there string) {
	b.t.Helper()
	for range 100 {
		if do(b, chromedp.Evaluate[bool](there)) {
			return
		}
		b.key("Tab", 9)
	}
	b.t.Fatalf("no Tab leads to where %s; the page shows:\n%s", there, b.text())
}
