package browser

import (
	"net/url"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hdsd/test/upstream"
)

// deaf makes a page that asks nothing again by itself: its timers of a second or more never end.
const deaf = `(real => window.setTimeout = (then, ms, ...rest) => real(then, ms >= 1000 ? 2e9 : ms, ...rest))(window.setTimeout)`

// TestAFlipIsPushed: each view that shows health shows that it has changed, and that it has changed
// back, without asking from time to time.
func TestAFlipIsPushed(t *testing.T) {
	c, server := site(t)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	b := open(t, c.HTTP, "/licences.txt")
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: deaf}); err != nil {
		t.Fatal(err)
	}
	for _, view := range []struct {
		path     string
		down, up []string
	}{
		{b.incident("web"), []string{"ongoing: 1 down"}, []string{"over after"}},
		{"#/", []string{"CLUSTER_DOWN", "Incident: 1 of 1 down", "0 healthy, 1 down", "all down", "1 of 1 down"}, []string{"Nothing needs attention", "1 healthy, 0 down", "0 of 1 down"}},
		{"#/clusters/web", []string{"1 of 1 endpoints, 1 down", "Incident"}, []string{"1 of 1 endpoints, 0 down"}},
		{"#/incidents", []string{"ongoing: 1 down"}, []string{"over after"}},
		{"#/clusters/web/" + url.PathEscape(server.Addr()), []string{"✕ UNHEALTHY in eu/a"}, []string{"● HEALTHY in eu/a"}},
	} {
		do(b, chromedp.Navigate("http://"+c.HTTP+"/?"+url.QueryEscape(view.path)+view.path))
		for _, want := range view.down {
			b.shows(want, true)
		}
		server.Set(upstream.Healthy())
		for _, want := range view.up {
			b.shows(want, true)
		}
		server.Set(upstream.Status(503))
		c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	}
	b.shows("✕ UNHEALTHY in eu/a", true)
	b.behaved()
}
