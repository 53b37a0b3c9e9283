package poll

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"pgregory.net/rapid"
)

const assignments = "assignments"

// fetch makes one of a client that was given a version of some names.
func fetch(id, by string, names []string, held, version string) *Fetch {
	return &Fetch{
		Key:  Key{Client{id, by}, ListOf(assignments, names)},
		Node: &corev3.Node{Id: id}, Held: held, Version: version,
		Contents: func() ([]string, []uint64) {
			if len(names) == 0 {
				names = []string{"a", "b"}
			}
			versions := make([]uint64, len(names))
			for i := range versions {
				versions[i] = uint64(len(version))
			}
			return names, versions
		},
	}
}

// TestTrackerGivesBackWhatItTakes lets clients poll in any way, and forgets them.
func TestTrackerGivesBackWhatItTakes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tracker := NewTracker(DefaultBytes)
		versions, now := []string{"", "other"}, time.Now()
		current := map[string]string{}
		for step := range rapid.IntRange(0, 40).Draw(r, "polls") {
			names := rapid.SampledFrom([][]string{{"a"}, {"b", "none"}, nil}).Draw(r, "names")
			if rapid.IntRange(0, 3).Draw(r, "change") == 0 || current[fmt.Sprint(names)] == "" {
				current[fmt.Sprint(names)] = fmt.Sprint("v", step)
			}
			of := rapid.SampledFrom(versions)
			f := fetch(rapid.SampledFrom([]string{"one", "two"}).Draw(r, "node"), ByREST, names, of.Draw(r, "has"), current[fmt.Sprint(names)])
			f.Node.Cluster = rapid.SampledFrom([]string{"", "longer"}).Draw(r, "cluster")
			if why := rapid.SampledFrom([]string{"", "", "no"}).Draw(r, "why"); why != "" {
				f.Refusal = &Nack{Text: why, Nonce: of.Draw(r, "refuses")}
			}
			versions = append(versions, f.Version)
			if now = now.Add(time.Minute); rapid.IntRange(0, 9).Draw(r, "narrow") == 0 {
				tracker.free -= overhead
				tracker.Record(f, now)
				tracker.free += overhead
			} else {
				f.Protocol = rapid.SampledFrom([]string{ByREST, ByFetch}).Draw(r, "by")
				tracker.Record(f, now)
			}
			for _, p := range tracker.All(now) {
				if p.State == Accepted && (p.Accepted != p.Served || p.Held != p.Served.Version) {
					r.Fatalf("accepted by who has %s, and not %s", p.Held, p.Served.Version)
				}
			}
		}
		n := tracker.Count(now.Add(Stays))
		if n != 0 || tracker.free != DefaultBytes || len(tracker.polls)+len(tracker.answers)+tracker.order.Len() != 0 {
			r.Errorf("%d clients, %d polls and %d answers are left, and %d of %d bytes",
				n, len(tracker.polls), len(tracker.answers), tracker.free, DefaultBytes)
		}
	})
}

func TestRequestedIsOfOneNode(t *testing.T) {
	start := time.Now()
	requested := func(tracker *Tracker, node string, now time.Time) string {
		var keys []string
		all := tracker.Requested(node, assignments, now, func(key string) { keys = append(keys, key) })
		slices.Sort(keys)
		return fmt.Sprint(keys, all)
	}
	check := func(tracker *Tracker, node string, now time.Time, want string) {
		t.Helper()
		if got := requested(tracker, node, now); got != want {
			t.Errorf("%s polls %s, want %s", node, got, want)
		}
	}
	tracker := NewTracker(DefaultBytes)
	tracker.Record(fetch("one", ByFetch, []string{"d"}, "", "v"), start)
	tracker.Record(fetch("two", ByREST, nil, "", "v"), start)
	tracker.Record(fetch("", ByREST, []string{"e"}, "", "v"), start)
	for i, names := range [][]string{{"a"}, {"b"}, {"c"}} {
		tracker.Record(fetch("one", ByREST, names, "", "v"), start.Add(time.Duration(i)*time.Minute))
	}
	check(tracker, "one", start, "[a b c d] false")
	check(tracker, "two", start, "[a b] true")
	check(tracker, "", start, "[] false")
	tracker.Count(start.Add(Stays)) // forgets
	check(tracker, "one", start, "[b c] false")
	check(tracker, "two", start, "[] false")

	tracker = NewTracker(5 * overhead)
	for i := range 10 {
		tracker.Record(fetch("one", ByREST, []string{fmt.Sprint(i)}, "", "v"), start)
	}
	if all := tracker.Requested("one", assignments, start, func(string) {}); !all {
		t.Error("after polls were forgotten for lack of room, a node may poll anything")
	}
	if all := tracker.Requested("one", assignments, start.Add(Stays), func(string) {}); all {
		t.Error("what was forgotten would be forgotten by its age")
	}
}
