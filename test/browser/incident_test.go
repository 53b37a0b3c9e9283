package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"hdsd/test/upstream"
)

// incident is the view of a cluster's incident that goes on.
func (b *browser) incident(cluster string) string {
	b.t.Helper()
	return "#/incidents/" + do(b, chromedp.Evaluate[string](fmt.Sprintf(`fetch("/v1/incidents?open=true&cluster=" + encodeURIComponent(%q)).then(answer => answer.json()).then(found => found.incidents[0].id)`, cluster), chromedp.EvalAwaitPromise))
}

// TestAnIncidentHasAView: from what needs attention, from its cluster and from the list to one
// incident, which tells what it was, whom it touched, what to do, and that it is over when it is.
// Its address alone shows the same.
func TestAnIncidentHasAView(t *testing.T) {
	c, server := site(t)
	tell(t, c, http.MethodPost, "/v1/annotations", `{"text": "release 7 goes out", "cluster": "web", "author": "ann"}`)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	b := open(t, c.HTTP, "/")
	const here = `location.hash.startsWith("#/incidents/")`
	for view, where := range map[string]string{"#/": ".attention", "#/clusters/web": ".trouble", "#/incidents": "th"} {
		b.visit(view)
		b.until("a link to the incident on "+view, fmt.Sprintf(`document.querySelector('main %s a[href^="#/incidents/"]') !== null`, where))
		do(b, chromedp.Click(fmt.Sprintf(`main %s a[href^="#/incidents/"]`, where)))
		b.until("the incident", here)
		b.shows("Checkers that saw it", true)
	}
	for _, want := range []string{
		server.Addr() + " of web in zone a went down, 1 still is", "ongoing: 1 down", "1 went down, 1 is down", "ENDPOINT is the likely cause",
		"hdsd describe incident", "from ● HEALTHY to ✕ UNHEALTHY", "checker-1\t✕ UNHEALTHY\t503", "1 endpoint, those that are down first", "checker-1\t1\t0", "NOTE release 7 goes out (ann)",
	} {
		b.shows(want, true)
	}
	address := do(b, chromedp.Evaluate[string]("location.hash"))
	server.Set(upstream.Healthy())
	b.shows("over after", true)
	b.shows("back after", true)
	b.behaved()
	b = open(t, c.HTTP, "/"+address)
	b.shows("over after", true)
	b.visit("#/incidents/nobody")
	b.shows("No incident of this id is known.", true)
	b.behaved()
}
