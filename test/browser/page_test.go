package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// browser is a view of one page of hdsd.
type browser struct {
	t    testing.TB
	ctx  context.Context
	host string

	mu       sync.Mutex
	troubles []string // what a page must not do
}

// chromium starts the Chromium of all tests. It ends with them.
var chromium = sync.OnceValues(func() (context.Context, error) {
	binary, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w: test/setup installs it", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator) // ends with the allocator
	end = stop
	return ctx, chromedp.Do(ctx) // starts it
})

// end ends the Chromium of all tests.
var end = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	end()
	os.Exit(code)
}

// open looks at a page of the server, as one who was never there.
func open(t testing.TB, server, path string) *browser {
	t.Helper()
	all, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, host: server}
	ctx, leave := chromedp.NewContext(all, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.notice))
	t.Cleanup(leave)
	b.ctx = ctx
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	do(b, chromedp.Navigate("http://"+server+path))
	return b
}

// notice notes requests to others, scripts that fail, and what the policy forbids.
func (b *browser) notice(event any) {
	trouble := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Host != b.host {
			trouble = "asks " + e.Request.URL
		}
	case *runtime.EventExceptionThrown:
		trouble = "fails: " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		if e.Entry.Source != "network" { // hdsd is away at times
			trouble = "says " + e.Entry.Text
		}
	}
	if trouble != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.troubles = append(b.troubles, trouble)
	}
}

// do has the browser do something.
func do[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, fleet.Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// text is what a reader sees.
func (b *browser) text() string {
	b.t.Helper()
	return do(b, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
}

// shows waits until the page shows a text, or does not.
func (b *browser) shows(what string, want bool) {
	b.t.Helper()
	for end := time.Now().Add(fleet.Patience); strings.Contains(b.text(), what) != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited for %q (%t); the page shows:\n%s", what, want, b.text())
		}
	}
}

// behaved holds that the page asked nobody else, and that nothing failed.
func (b *browser) behaved() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		b.t.Errorf("the page %s", trouble)
	}
}

const cluster = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: web
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 1s, interval: 0.25s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}]
  load_assignment:
    cluster_name: web
    endpoints:
    - locality: {region: eu, zone: a}
      lb_endpoints: [{endpoint: {address: {socket_address: {address: HOST, port_value: PORT}}}}]
`

// site is a coordinator that checks one upstream.
func site(t *testing.T) (*fleet.Coordinator, *upstream.Server) {
	t.Helper()
	return siteOf(t, cluster)
}

// siteOf is a site of these clusters, web among them. HOST and PORT are those of the upstream.
func siteOf(t *testing.T, clusters string) (*fleet.Coordinator, *upstream.Server) {
	t.Helper()
	server := fleet.Upstreams(t, 1, upstream.Options{})[0]
	host, port, _ := strings.Cut(server.Addr(), ":")
	c := fleet.Prepare(t, strings.NewReplacer("HOST", host, "PORT", port).Replace(clusters), fleet.FastReports)
	c.Start()
	fleet.Checkers(t, c, 1)
	c.AwaitHealth("web", server.Addr(), "HEALTHY")
	return c, server
}

// TestAClusterIsShownLive: from the overview to a cluster, an endpoint there fails, hdsd is
// killed and comes back, the endpoint recovers; and the page is never loaded again.
func TestAClusterIsShownLive(t *testing.T) {
	c, server := site(t)
	b := open(t, c.HTTP, "/")
	b.shows("Nothing needs attention", true)
	do(b, chromedp.Click(`a[href*="web"]`))
	do(b, chromedp.Evaluate[bool]("window.mine = true"))
	b.shows(server.Addr(), true)
	b.shows("HEALTHY", true)
	server.Set(upstream.Status(503))
	b.shows("UNHEALTHY", true)
	c.Kill()
	b.shows("hdsd cannot be reached", true)
	b.shows("UNHEALTHY", true)
	c.Start()
	b.shows("hdsd cannot be reached", false)
	server.Set(upstream.Healthy())
	b.shows("UNHEALTHY", false)
	b.shows("HEALTHY", true)
	if !do(b, chromedp.Evaluate[bool]("window.mine === true")) {
		t.Error("the page was loaded again")
	}
	b.behaved()
}

// TestEachViewShowsWhatIsThere, by its address alone.
func TestEachViewShowsWhatIsThere(t *testing.T) {
	c, server := site(t)
	server.Set(upstream.Status(503))
	c.AwaitHealth("web", server.Addr(), "UNHEALTHY")
	at := url.PathEscape(server.Addr())
	for path, wants := range map[string][]string{
		"/":                               {"CLUSTER_DOWN", "all down", "eu/a", "1 of 1 down", "What changed lately", server.Addr()},
		"/#/clusters/web":                 {"eu/a", "1 of 1 endpoints, 1 down"},
		"/#/clusters/web?health=HEALTHY":  {"0 of 1 endpoints"},
		"/#/clusters/web/" + at:           {"UNHEALTHY", "503", "checker-1", "Last hour", "30 d"},
		"/#/clusters/%":                   {`unknown cluster "%"`},
		"/#/clusters/nowhere":             {`unknown cluster "nowhere"`},
		"/#/clusters/nowhere/10.0.0.1:80": {`unknown cluster "nowhere"`},
		"/#/incidents":                    {"ongoing: 1 down", "web"},
		"/#/checkers":                     {"checker-1", "SYNCED"},
		"/#/clients":                      {"checker-1", "HDS"},
	} {
		b := open(t, c.HTTP, path)
		for _, want := range wants {
			b.shows(want, true)
		}
		b.behaved()
	}
}

// TestNothingActsOnThePage: names with characters that turn the text around them, or that nobody
// sees, show them as escapes. Links go on working.
func TestNothingActsOnThePage(t *testing.T) {
	server := fleet.Upstreams(t, 1, upstream.Options{})[0]
	host, port, _ := strings.Cut(server.Addr(), ":")
	text := strings.NewReplacer("HOST", host, "PORT", port, "web", `"pay\u202Eyap\u0007"`, "eu", `"e\u2066u"`).Replace(cluster)
	c := fleet.Prepare(t, text, fleet.FastReports)
	c.Start()
	fleet.Checkers(t, c, 1)
	b := open(t, c.HTTP, "/")
	b.shows(`pay\u{202e}yap\u{7}`, true)
	do(b, chromedp.Click(`a[href*="pay"]`))
	b.shows(`e\u{2066}u/a`, true)
	b.shows(server.Addr(), true)
	if strings.ContainsAny(b.text(), "\u202e\u2066\u0007") {
		t.Errorf("the page shows them:\n%q", b.text())
	}
	b.behaved()
}

// TestALargeCluster: of 100,000 endpoints, only what is seen is in the document, and the last
// one can be scrolled to.
func TestALargeCluster(t *testing.T) {
	addresses := make([]string, 100_000)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.%d.%d.%d:80", i/62500, i/250%250, i%250)
	}
	c := fleet.Prepare(t, fleet.ClusterFile(fleet.StaticCluster("large", fleet.CheckHTTP, addresses)), fleet.FastReports)
	c.Start()
	b := open(t, c.HTTP, "/#/clusters/large")
	b.shows("100,000 of 100,000 endpoints", true)
	b.shows("10.0.0.0:80", true)
	do(b, chromedp.Evaluate[float64](`(list => list.scrollTop = list.scrollHeight)(document.querySelector(".long"))`))
	b.shows("10.1.99.97:80", true) // the last by its letters, of the last zone
	if rows := do(b, chromedp.Evaluate[int](`document.querySelectorAll(".row").length`)); rows > 100 {
		t.Errorf("the document has %d rows", rows)
	}
	b.behaved()
}
