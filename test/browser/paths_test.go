package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"hdsd/health"
	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestTheMatrixOfPaths: how the checkers of one zone see the endpoints of another.
func TestTheMatrixOfPaths(t *testing.T) {
	c, server := site(t)
	envoy.StartChecker(t, envoy.Checker{ID: "checker-2", HDS: c.GRPC, Locality: health.Locality{Region: "eu", Zone: "b"}})
	b := open(t, c.HTTP, "/#/checkers")
	b.shows("eu/b\tnone of 1 down", true)
	server.Set(upstream.Status(503))
	b.shows("eu/b\t1 of 1 down", true)
	b.behaved()
}

// TestAMatrixOfManyZones shows those that are worst off, and says that there are others.
func TestAMatrixOfManyZones(t *testing.T) {
	c, _ := site(t)
	b := open(t, c.HTTP, "/#/clients")
	do(b, chromedp.Evaluate[bool](`(real => (window.fetch = async (at, options) => !at.startsWith("/v1/paths") ? real(at, options) : Response.json({nextPageToken: "", paths:
		Array.from({length: 100 * 100}, (_, i) => ({from: "f" + Math.floor(i / 100), to: "t" + i % 100, votes: 9, downs: i === 7777 ? 3 : 0, contradicted: i === 9999 ? 8 : 0, cutReason: i === 9999 ? "nobody in f99 reaches t99" : ""}))}), true))(window.fetch)`))
	b.visit("#/checkers")
	for _, want := range []string{"to t99", "CUT: 8 of 9 contradicted", "nobody in f99 reaches t99", "to t77", "3 of 9 down", "9,100 more paths"} {
		b.shows(want, true)
	}
	if cells := do(b, chromedp.Evaluate[int](`document.querySelectorAll("tr.heat td").length`)); cells != 30*30 {
		t.Errorf("the matrix has %d cells", cells)
	}
	b.behaved()
}
