package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// Names as long as those of meshes, and an address as long as there is.
const (
	longName    = "outbound|8080|canary|payments-checkout.production.svc.cluster.local"
	longZone    = "northamerica-northeast1-b"
	longAddress = "[2001:db8:85a3:8d3:1319:8a2e:370:7348]:65535"
)

// crowded is a site where much goes on, with long names: a cluster down by an operator, another
// by its upstream, a freeze, and a source of which something is held.
func crowded(t *testing.T) (*fleet.Coordinator, *upstream.Server) {
	t.Helper()
	server := fleet.Upstreams(t, 1, upstream.Options{})[0]
	host, port, _ := strings.Cut(server.Addr(), ":")
	web := strings.NewReplacer("HOST", host, "PORT", port).Replace(cluster)
	// The long address is checked at that of the upstream.
	long := strings.NewReplacer("name: web", fmt.Sprintf("name: %q", longName), "zone: a", "zone: "+longZone,
		"{endpoint: {address: {socket_address: {address: HOST, port_value: PORT}}}}",
		fmt.Sprintf(`{endpoint: {health_check_config: {address: {socket_address: {address: %s, port_value: %s}}}, address: {socket_address: {address: "2001:db8:85a3:8d3:1319:8a2e:370:7348", port_value: 65535}}}}`, host, port),
	).Replace(strings.TrimPrefix(cluster, "resources:\n"))
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.0.%d:80", i+1)
	}
	c := fleet.Prepare(t, web+long+fleet.StaticCluster("batch", "", many), fleet.FastReports)
	c.Configure("{name: local,", "{name: local, hold_shrinkage: {share: 0.5, for: 300s},")
	c.Start()
	fleet.Checkers(t, c, 1)
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	tell(t, c, http.MethodPost, "/v1/overrides", fmt.Sprintf(`{"cluster": %q, "health": "UNHEALTHY", "author": "ann", "reason": "the new kernel goes in, zone after zone, until Friday"}`, longName))
	c.AwaitHealth(longName, longAddress, "UNHEALTHY")
	tell(t, c, http.MethodPost, "/v1/freeze", `{"reason": "we move to the other region", "author": "bob", "publish": "HELD"}`)
	c.SetClusters(web + long) // too much goes at once
	return c, server
}

// screen gives the page a phone's screen.
func (b *browser) screen(width, height int64) {
	b.t.Helper()
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 2, Mobile: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		b.t.Fatal(err)
	}
}

// misfits are what runs off a screen of a width, what hides a part of itself, and what is too
// small for a finger.
const misfits = `(width => {
	const found = [], name = e => e.tagName + "." + e.className + " " + JSON.stringify(e.innerText?.slice(0, 60));
	for (const e of document.body.querySelectorAll("*")) {
		if (e.closest(".hidden, .skip, thead") || !e.checkVisibility()) continue;
		const r = e.getBoundingClientRect(), style = getComputedStyle(e);
		if (r.width && (r.left < -.5 || r.right > width + .5)) found.push(name(e) + " goes from " + r.left + " to " + r.right);
		if (style.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1) found.push(name(e) + " hides a part: " + e.scrollWidth + " of " + e.clientWidth + ", " + [...e.querySelectorAll("*")].map(part => part.tagName + " until " + part.getBoundingClientRect().right).join());
		if (e.matches("button, select, input, nav a, .row a, th a, .attention a") && r.height < 40) found.push(name(e) + " is " + r.height + " high");
	}
	return document.documentElement.scrollWidth > width ? [...found, "the document is " + document.documentElement.scrollWidth + " wide"] : found;
})(%d)`

// TestOnAPhone: no view runs off the screen or hides a part of a name or an address, and a
// finger hits what is to be pressed.
func TestOnAPhone(t *testing.T) {
	c, server := crowded(t)
	b := open(t, c.HTTP, "/")
	for _, view := range []struct {
		path, press string
		shows       []string
	}{
		{"#/", "", []string{"CLUSTER_DOWN", longName, longName + " " + longAddress, server.Addr(), "eu/" + longZone, "1 of 1 down", "of 3 clusters"}},
		{"#/clusters/web", "", []string{server.Addr(), "UNHEALTHY", "1 of 1 checker says UNHEALTHY"}},
		{"#/clusters/" + url.PathEscape(longName), "", []string{longAddress, "eu/" + longZone, "UNHEALTHY"}},
		{"#/clusters/" + url.PathEscape(longName), "Override the health of " + longName, []string{"Reason"}},
		{"#/clusters/web/" + url.PathEscape(server.Addr()), "", []string{server.Addr(), "Votes at the changes of the last hour", "checker-1 UNHEALTHY 503"}},
		{"#/clusters/" + url.PathEscape(longName) + "/" + url.PathEscape(longAddress), "", []string{longAddress, "Overrides of the last hour"}},
		{"#/incidents", "", []string{"ongoing: 1 down", longName, server.Addr()}},
		{b.incident(longName), "", []string{longAddress, longName, "What to do", "What happened", "Checkers that saw it"}},
		{"#/checkers", "", []string{"checker-1", "SYNCED", "Paths between zones"}},
		{"#/clients", "", []string{"checker-1", "the new kernel goes in", longName, "would be left", "we move to the other region"}},
		{"#/clients", "Unfreeze", []string{"Data planes get the present verdicts at once."}},
	} {
		for _, width := range []int64{390, 320} {
			b.screen(width, 844)
			b.visit(view.path)
			if view.press != "" {
				b.press(view.press)
			}
			for _, want := range view.shows {
				b.shows(want, true)
			}
			if wrong := do(b, chromedp.Evaluate[[]string](fmt.Sprintf(misfits, width))); len(wrong) > 0 {
				t.Errorf("%s %s at %d:\n%s", view.path, view.press, width, strings.Join(wrong, "\n"))
			}
			if view.press != "" {
				b.press("Cancel")
				b.until("the dialog to close", `document.querySelector("dialog") === null`)
			}
		}
	}
	b.behaved()
}
