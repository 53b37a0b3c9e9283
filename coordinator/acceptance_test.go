package coordinator_test

import (
	"fmt"
	"strings"
	"testing"

	"hdsd/test/etcd"
)

// TestAcceptanceOnAllReplicas covers an operator who accepts on one replica what all hold, also where one is away or holds
// something else.
func TestAcceptanceOnAllReplicas(t *testing.T) {
	t.Parallel()
	m := newManagement(t)
	m.saysMany(10)
	m.come()
	f := newFleet(t, etcd.Start(t), static("local", "127.0.0.1:1"))
	f.sources = m.source("mesh", "600s", ", hold_shrinkage: {}")
	for _, id := range []string{"r1", "r2"} {
		f.dirs[id] = t.TempDir()
		f.start(id).ready()
	}
	want := func(text string) {
		t.Helper()
		for _, s := range f.sites {
			s.wantInUse("mesh", text)
		}
	}
	accept := func(id, more string) string {
		return string(f.sites[id].post("/v1/sources", `{"name":"mesh","reason":"moved","author":"ann"`+more+`}`))
	}
	want("10/20")
	for _, s := range f.sites {
		s.eventually("the other replica", func() bool { return s.scrape().sum("hdsd_replica_links") == 1 })
	}
	m.saysMany(1)
	want("10/20, 1/2 left")
	held := f.sites["r2"].source("mesh").Held
	if answer := accept("r2", fmt.Sprintf(`,"heldRevision":%q`, held.Revision)); !strings.Contains(answer, `"accepted":{`) || strings.Contains(answer, "message") {
		t.Errorf("the answer is %s", answer)
	}
	want("1/2")
	for id, s := range f.sites {
		s.eventually("an audit on "+id, func() bool {
			_, text := s.get("/v1/audit")
			return strings.Count(text, `"AcceptSource"`) == 1 && strings.Contains(text, `"author":"ann"`) && strings.Contains(text, `"address":"127.0.0.1:`)
		})
	}
	if answer := accept("r1", ""); !strings.Contains(answer, "nothing to accept") {
		t.Errorf("nothing is accepted: %s", answer)
	}

	m.saysMany(10)
	want("10/20")
	m.saysMany(1)
	want("10/20, 1/2 left")
	f.stop("r2")
	f.sites["r1"].eventually("a lost replica", func() bool { _, text := f.sites["r1"].get("/v1/status"); return strings.Contains(text, "REPLICA_LOST") })
	if answer := accept("r1", ""); !strings.Contains(answer, "is not accepted on r2 (it has no session), but on r1: repeat this when all replicas answer") {
		t.Errorf("while a replica is away: %s", answer)
	}
	want("1/2")
	f.start("r2").ready()
	f.sites["r2"].wantInUse("mesh", "10/20, 1/2 left")
	f.sites["r1"].eventually("the repetition to be taken", func() bool { return strings.Contains(accept("r1", ""), `"accepted":{`) })
	want("1/2")
}
