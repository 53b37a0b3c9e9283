package feed

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/source"
	"hdsd/source/sample"
)

// TestBrokenUntilPutRight: a source is broken while it has a problem that is no warning. The first
// problem with a line comes first.
func TestBrokenUntilPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaking(t, web("a", "b"))
		say := func(kept bool, problems ...source.Problem) {
			set := web("a", "b")
			set.Problems, set.Kept = problems, kept
			k.Take(k.by, set)
		}
		want := func(problem string, lasted time.Duration) {
			t.Helper()
			all := k.Broken()
			if len(all) != 1 || all[0].Problem != problem || all[0].Name != "x" || time.Since(all[0].Since) != lasted || k.Sources()[0].Problem != problem {
				t.Errorf("got %+v and %q, want %q for %s", all, k.Sources()[0].Problem, problem, lasted)
			}
		}
		wantNone := func() {
			t.Helper()
			if all := k.Broken(); len(all) != 0 || k.Sources()[0].Problem != "" {
				t.Errorf("nothing is wrong: %+v", all)
			}
		}
		hint := source.Problem{File: "x.yaml", Line: 1, Message: "is odd", Warning: true}
		whole := source.Problem{File: "x.yaml", Message: "cannot be read"}
		field := source.Problem{File: "x.yaml", Line: 9, Resource: "c", Field: "name", Message: "is missing"}
		say(false, hint)
		wantNone()
		say(true, whole, hint, field)
		want("x.yaml:9: c: name: is missing (the last valid version of the source stays in use) (and 1 more)", 0)
		time.Sleep(time.Second) // of the bubble
		say(false, whole)
		want("x.yaml: cannot be read", time.Second)
		say(false)
		wantNone()
		for range 10 {
			say(false, whole)
			say(false)
		}
		if begun, ended := strings.Count(k.log.String(), `"source_broken"`), strings.Count(k.log.String(), `"source_broken_over"`); begun != 1 || ended != 1 {
			t.Errorf("logged %d and %d times within a second", begun, ended)
		}
		say(false, whole)       // within the minute, and it stays so
		time.Sleep(time.Minute) // of the bubble
		say(false, whole, hint)
		if n := strings.Count(k.log.String(), `"source_broken"`); n != 2 {
			t.Errorf("logged %d times after a minute", n)
		}
	})
}

// TestBrokenClustersSayWhatIsInUse: the problem of a cluster says which version hdsd uses.
func TestBrokenClustersSayWhatIsInUse(t *testing.T) {
	k := newTaking(t, web("a"))
	for _, c := range []struct{ name, want string }{
		{"a", "a: is wrong (the last valid version of it stays in use)"},
		{"new", "new: is wrong (it is not in use)"},
		{"other", "other: is wrong"},
	} {
		set := &source.Set{Source: "x", Problems: []source.Problem{{File: "x.json", Resource: c.name, Message: "is wrong"}}}
		for _, name := range []string{"a", "new"} {
			cluster := sample.Web(name, "10.0.0.1:80")
			cluster.Source = "x"
			if name == c.name || name == "new" {
				cluster.Rejected = "is wrong"
			}
			set.Clusters = append(set.Clusters, cluster)
		}
		k.Take(k.by, set)
		if all := k.Broken(); len(all) != 1 || all[0].Problem != c.want {
			t.Errorf("got %+v, want %q", all, c.want)
		}
	}
}
