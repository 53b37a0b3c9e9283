package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hdsd/test/upstream"
)

// TestAnEndpointHasATimeLine: an outage and its end are drawn, with the vote of the checker
// and its code at each change, and told in words.
func TestAnEndpointHasATimeLine(t *testing.T) {
	c, server := site(t)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	server.Set(upstream.Healthy())
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	b := open(t, c.HTTP, "/#/clusters/web/"+url.PathEscape(server.Addr()))
	b.shows("Votes at the changes of the last hour", true)
	b.shows("checker-1 UNHEALTHY 503", true)
	for _, label := range []string{"Last hour", "Last 24 hours", "Last 30 days"} {
		if drawn := do(b, chromedp.Evaluate[int](`document.querySelectorAll('[aria-label^="`+label+`: down"] .unhealthy').length`)); drawn != 1 {
			t.Errorf("%s: %d outages are drawn", label, drawn)
		}
	}
	lane := do(b, chromedp.Evaluate[[]string](`[...document.querySelectorAll('[aria-label^="checker-1: 1 of 3 votes down"] span')].map(one => one.innerText + " " + one.title)`))
	if len(lane) != 3 || !strings.HasPrefix(lane[1], "✕ ") || !strings.HasSuffix(lane[1], "checker-1 UNHEALTHY 503") || !strings.HasPrefix(lane[0], "● ") {
		t.Errorf("the lane of checker-1 shows %q", lane)
	}
	b.behaved()
}

// TestAStripDrawsNoMoreThanItKnows: of more changes than the page asks for, it tells so, and
// claims nothing about the time before.
func TestAStripDrawsNoMoreThanItKnows(t *testing.T) {
	c, server := site(t)
	for i := range 510 {
		health := []string{"UNHEALTHY", "HEALTHY"}[i%2]
		tell(t, c, http.MethodPost, "/v1/overrides", fmt.Sprintf(`{"cluster": "web", "address": %q, "health": %q, "reason": "drill"}`, server.Addr(), health))
	}
	b := open(t, c.HTTP, "/#/clusters/web/"+url.PathEscape(server.Addr()))
	b.shows("The latest 100 changes.", true)
	if first := do(b, chromedp.Evaluate[string](`document.querySelector('[aria-label="Last 30 days: only the latest 500 changes are drawn"] span')?.title ?? "nothing"`)); first != "not drawn" {
		t.Errorf("before the first change that is known, %s is drawn", first)
	}
	b.behaved()
}
