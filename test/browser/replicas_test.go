package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTheReplicaOfAStreamIsShown where there are several, a row for each stream of a client; without them there is no
// column.
func TestTheReplicaOfAStreamIsShown(t *testing.T) {
	c, _ := site(t)
	b := open(t, c.HTTP, "/#/clients")
	b.shows("checker-1", true)
	b.shows("Replica", false)
	do(b, chromedp.Evaluate[bool](`(real => (window.fetch = async (at, options) => {
		const answer = await real(at, options);
		if (!at.startsWith("/v1/clients") && !at.startsWith("/v1/checkers")) return answer;
		const body = await answer.json();
		for (const list of ["clients", "checkers"]) {
			body[list] = body[list]?.flatMap((row) => ["hdsd-7", "hdsd-8"].map((replica) => ({...row, replica})));
		}
		return Response.json(body);
	}, true))(window.fetch)`))
	b.shows("Replica", true)
	b.shows("hdsd-7", true)
	b.shows("hdsd-8", true)
	b.visit("#/checkers")
	b.shows("at the replica hdsd-7", true)
	b.behaved()
}
