package coordinator

import (
	"slices"
	"testing"

	"hdsd/notify"
)

func changesOf(changes []notify.Change) (texts []string) {
	for i := range changes {
		text := "+" + changes[i].Name
		if changes[i].Ended {
			text = "-" + changes[i].Name
		}
		texts = append(texts, text)
	}
	return texts
}

// TestConditionsOfALeader covers conditions that end while another replica leads, and those that another replica goes
// on with.
func TestConditionsOfALeader(t *testing.T) {
	condition := func(name string, ended bool) notify.Change {
		return notify.Change{Condition: notify.Condition{Key: notify.Key{Kind: notify.ClusterDown, Name: name}}, Ended: ended}
	}
	var o openConditions
	want := func(got []notify.Change, want ...string) {
		t.Helper()
		if !slices.Equal(changesOf(got), want) {
			t.Errorf("%v, want %v", changesOf(got), want)
		}
	}
	want(o.add([]notify.Change{condition("a", false), condition("b", false), condition("c", false), condition("c", true)}, true), "+a", "+b", "+c", "-c")
	o.renew() // another term: b is wrong still
	want(o.add([]notify.Change{condition("b", false)}, false), "+b")
	want(o.add(nil, true), "-a")
	want(o.add(nil, true))
	want(o.endAll(), "-b")
	want(o.endAll())
}
