package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"hdsd/test/fleet"
)

// press clicks the button of this name.
func (b *browser) press(name string) {
	b.t.Helper()
	button := fmt.Sprintf(`[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("button")].find(one => (one.ariaLabel ?? one.innerText) === %q)`, name)
	b.until("the button "+name, button+" !== undefined")
	do(b, chromedp.Evaluate[bool](button+".click(), true"))
}

// until waits for what an expression tells.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(fleet.Patience); !do(b, chromedp.Evaluate[bool](expression)); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited for %s; the page shows:\n%s", what, b.text())
		}
	}
}

// fill puts text into a field of the dialog.
func (b *browser) fill(field, text string) {
	b.t.Helper()
	do(b, chromedp.Evaluate[bool](fmt.Sprintf(`(one => (one.value = %q, one.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("dialog [name=%s]"))`, text, field)))
}

// TestAnOperatorActsOnThePage: each change is told, confirmed, made, and seen without a reload.
func TestAnOperatorActsOnThePage(t *testing.T) {
	c, server := site(t)
	at := url.PathEscape(server.Addr())
	b := open(t, c.HTTP, "/#/clusters/web/"+at)
	b.press("Override the health of " + server.Addr() + " in web")
	b.press("Show what it does") // without a reason, the browser asks for one
	b.until("the reason to be asked for", `document.querySelector("dialog input:invalid")?.name === "reason"`)
	b.fill("reason", "new kernel")
	b.fill("author", "ann")
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 1 to DRAINING.", true)
	b.fill("health", "UNHEALTHY")
	b.shows("It sets 1 endpoint of 1 to DRAINING.", false) // what is confirmed is what was shown
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 1 to UNHEALTHY.", true)
	b.press("Override")
	b.shows("An override sets this health: new kernel (ann)", true)
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	b.until("the override in the time line", `document.querySelector('[aria-label="operators: 1 change"] span')?.innerText === "▲"`)
	b.shows("ago set: unhealthy: new kernel (ann)", true)

	b.press("Clear the override of web " + server.Addr())
	b.press("Clear")
	b.shows("An override sets this health", false)
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	b.shows("ago cleared: unhealthy: new kernel (ann)", true)
	b.until("its end in the time line", `[...document.querySelectorAll('[aria-label="operators: 2 changes"] span')].map(one => one.innerText).join() === "▽,▲"`)

	b.visit("#/clients")
	b.press("Freeze")
	b.fill("reason", "we move")
	b.press("Freeze")
	b.shows("we move (ann). Data planes get the health at the moment of the freeze.", true)
	b.press("Unfreeze")
	b.press("Unfreeze")
	b.shows("Not frozen.", true)

	b.visit("#/checkers")
	b.press("Set trust in checker-1")
	b.fill("reason", "it lies")
	b.press("Set trust")
	b.shows("DISTRUSTED by an operator: it lies (ann)", true)
	b.press("Clear the trust in checker-1")
	b.press("Clear")
	b.shows("DISTRUSTED", false)
	b.behaved()
}

// TestAnActThatFailsSaysWhy: hdsd is away, or refuses. A dialog that is left changes nothing.
func TestAnActThatFailsSaysWhy(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/#/clusters/web")
	b.press("Override the health of web")
	b.fill("reason", "x")
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 1 to DRAINING.", true)
	b.press("Cancel")
	b.until("the dialog to close", `document.querySelector("dialog") === null`)
	c.AwaitHealth("web", server.Addr(), "HEALTHY")

	b.press("Override the health of web")
	b.fill("reason", "x")
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 1 to DRAINING.", true)
	c.Kill()
	b.press("Override")
	b.shows("Whether the change was made is not known.", true)
	b.press("Show what it does")
	b.shows("Nothing was changed.", true)
	c.SetClusters("resources: []\n")
	c.Start()
	b.press("Show what it does")
	b.until("the refusal", `document.querySelector("dialog [role=alert]")?.innerText.includes("web") === true`)
	b.behaved()
}

// TestAnOverrideOfOneZone leaves the others alone.
func TestAnOverrideOfOneZone(t *testing.T) {
	c := fleet.Prepare(t, fleet.ClusterFile(fleet.StaticCluster("web", fleet.CheckHTTP, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"})), fleet.FastReports)
	c.Start()
	b := open(t, c.HTTP, "/#/clusters/web")
	b.press("Override the health of web")
	b.fill("reason", "zone b moves")
	do(b, chromedp.Evaluate[bool](`(one => (one.selectedIndex = [...one.options].findIndex(o => o.text === "eu/b"), true))(document.querySelector("dialog [name=locality]"))`))
	b.press("Show what it does")
	b.shows("It sets 1 endpoint of 3 to DRAINING.", true)
	b.press("Override")
	c.AwaitHealth("web", "127.0.0.1:2", "DRAINING")
	for _, other := range []string{"127.0.0.1:1", "127.0.0.1:3"} {
		c.AwaitHealth("web", other, "UNKNOWN")
	}
	b.behaved()
}

// TestAViewerIsOfferedNothing, and an operator of some clusters what concerns these.
func TestAViewerIsOfferedNothing(t *testing.T) {
	c := fleet.Prepare(t, fleet.ClusterFile(fleet.StaticCluster("pay-a", fleet.CheckHTTP, []string{"10.0.0.1:80"}), fleet.StaticCluster("web", fleet.CheckHTTP, []string{"10.0.0.2:80"})), fleet.FastReports)
	hash := func(token string) string { h := sha256.Sum256([]byte(token)); return hex.EncodeToString(h[:]) }
	at := filepath.Join(c.Dir, "hdsd.yaml")
	text, err := os.ReadFile(at)
	if err == nil {
		err = os.WriteFile(at, append(text, fmt.Sprintf("\naccess:\n  grants:\n  - {roles: [VIEWER], token_sha256: %s}\n  - {roles: [VIEWER], token_sha256: %s}\n  - {roles: [OPERATOR], token_sha256: %s, cluster_name_glob: \"pay-*\"}\n",
			hash("looks"), hash("pays"), hash("pays"))...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	for token, offers := range map[string]map[string]string{
		"looks": {"#/clusters/pay-a": "", "#/clusters/web": "", "#/clients": ""},
		"pays":  {"#/clusters/pay-a": "Override", "#/clusters/web": "", "#/clients": ""},
	} {
		b := open(t, c.HTTP, "/")
		b.shows("Bearer token", true)
		do(b, chromedp.Evaluate[bool](fmt.Sprintf(`document.querySelector("[name=token]").value = %q, document.querySelector("form button").click(), true`, token)))
		b.until("hdsd to say who asks", `document.querySelector(".version")?.innerText.includes("ready") === true`)
		for view, want := range offers {
			b.visit(view)
			b.shows(map[string]string{"#/clients": "Not frozen.", "#/clusters/pay-a": "1 of 1 endpoints", "#/clusters/web": "1 of 1 endpoints"}[view], true)
			if got := do(b, chromedp.Evaluate[string](`[...document.querySelectorAll("main button")].map(one => one.innerText).join()`)); got != want {
				t.Errorf("%s is offered %q on %s, want %q", token, got, view, want)
			}
		}
		b.behaved()
	}
}

// visit goes to a view.
func (b *browser) visit(view string) {
	b.t.Helper()
	do(b, chromedp.Evaluate[string]("location.hash = '"+view+"'"))
}
