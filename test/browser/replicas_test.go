package browser

import (
	"fmt"
	"strings"
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

// TestReplicasAreListed where there are several, also one that does not answer, and on a phone. Without them there is
// no list.
func TestReplicasAreListed(t *testing.T) {
	c, _ := site(t)
	b := open(t, c.HTTP, "/#/clients")
	b.shows("checker-1", true)
	b.shows("Lag", false)
	do(b, chromedp.Evaluate[bool](`(real => (window.fetch = async (at, options) => {
		const answer = await real(at, options);
		if (!at.startsWith("/v1/replicas")) return answer;
		const body = await answer.json();
		const [own] = body.replicas;
		return Response.json({...body, replicas: [
			{...own, id: "hdsd-7", self: true, leader: window.led === true, lagMillis: 12},
			{...own, id: "hdsd-8", self: false, leader: false, connected: false, position: "0", version: "", since: undefined},
		]});
	}, true))(window.fetch)`))
	b.shows("hdsd-7 (answers)\tno\tyes\t1\t0\t12 ms\t", true)
	b.shows("hdsd-8\tno\tno\t–\t–\t–\t–", true)
	b.screen(320, 844)
	if wrong := do(b, chromedp.Evaluate[[]string](fmt.Sprintf(misfits, 320))); len(wrong) > 0 {
		t.Errorf("on a phone:\n%s", strings.Join(wrong, "\n"))
	}
	b.visit("#/")
	b.shows("1 of 2 connected, none leads", true)
	do(b, chromedp.Evaluate[bool]("window.led = true"))
	b.shows("1 of 2 connected, hdsd-7 leads", true)
	b.behaved()
}
