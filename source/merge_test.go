package source_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hdsd/source"
)

// drawCluster draws a cluster of one of few names, with few service names and
// endpoints, so that clusters of all sources get into each other's way. Each has
// another line.
func drawCluster(t *rapid.T, from, name string, line int) *source.Cluster {
	c := drawKind(t, from, name)
	c.Line = line
	return c
}

func drawKind(t *rapid.T, from, name string) *source.Cluster {
	hosts := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "hosts")
	service := rapid.SampledFrom([]string{name, "a", "b", "svc"}).Draw(t, "service")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 5:
		return bad(from, name, true)
	case 0:
		return lone(from, name, hosts)
	case 1:
		return inline(from, name, hosts)
	case 2:
		return eds(from, name, service, assignment(hosts))
	case 3:
		bad := inline(from, name, hosts)
		bad.Rejected = "bad"
		return bad
	default:
		return eds(from, name, service, nil)
	}
}

// drawSet draws what a source says next: mostly what it said, but for a cluster.
func drawSet(t *rapid.T, from string, line int, before *source.Set) *source.Set {
	changed := rapid.SampledFrom([]string{"a", "b", "c", "d", "svc"}).Draw(t, "changed")
	with := map[string]*source.Cluster{changed: nil}
	if rapid.IntRange(0, 3).Draw(t, "is") > 0 {
		with[changed] = drawCluster(t, from, changed, line)
	}
	after := &source.Set{Source: from, Awaited: rapid.IntRange(0, 9).Draw(t, "awaited") == 0}
	if before != nil {
		after.Clusters = before.Clusters
	}
	after.Clusters = source.Amend(after.Clusters, with)
	if rapid.Bool().Draw(t, "troubled") {
		after.Problems = []source.Problem{{Resource: changed, Message: "of its source"}}
	}
	return after
}

// pointers tells where a catalogue has not the pointers of the one before
// exactly where nothing is different.
func pointers(before, after *source.Catalog) (wrong []string) {
	was := map[string]*source.Cluster{}
	for _, c := range before.Clusters {
		was[c.Name] = c
	}
	for _, c := range after.Clusters {
		old := was[c.Name]
		same := old != nil && c.Source == old.Source && c.Line == old.Line && c.Assignment == old.Assignment &&
			c.AssignmentSource == old.AssignmentSource && c.Rejected == old.Rejected && reflect.DeepEqual(c.HealthChecks, old.HealthChecks)
		if same != (c == old) {
			wrong = append(wrong, fmt.Sprintf("%s: same %v, pointer %v", c.Name, same, c == old))
		}
	}
	return wrong
}

// TestMergeOfChanges: a catalogue made of the one before is what it would be if
// it was made anew.
func TestMergeOfChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := []string{"x", "y", "z"}
		sets := make([]*source.Set, len(sources))
		defaults := []source.DefaultHealthChecks{{Glob: "a*", HealthChecks: checks(1)}}
		var before *source.Catalog
		for line := range rapid.IntRange(1, 30).Draw(t, "steps") {
			sets = append([]*source.Set(nil), sets...)
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0:
				defaults = []source.DefaultHealthChecks{{Glob: rapid.SampledFrom([]string{"a*", "*"}).Draw(t, "glob"), HealthChecks: checks(2)}}
			case 1:
				sets[rapid.IntRange(0, 2).Draw(t, "gone")] = nil
			default:
				i := rapid.IntRange(0, 2).Draw(t, "source")
				sets[i] = drawSet(t, sources[i], line, sets[i])
			}
			after := source.Merge(before, sets, defaults)
			if diff := cmp.Diff(describe(source.Merge(nil, sets, defaults)), describe(after)); diff != "" {
				t.Fatal(diff)
			}
			if before != nil {
				if wrong := pointers(before, after); wrong != nil {
					t.Fatal(wrong)
				}
			}
			before = after
		}
	})
}

func TestChanges(t *testing.T) {
	a, b, c, other := lone("", "a", ""), lone("", "b", ""), lone("", "c", ""), lone("", "b", "")
	tests := map[string]struct {
		before, after    []*source.Cluster
		changed, removed []*source.Cluster
	}{
		"the same":       {before: []*source.Cluster{a, b}, after: []*source.Cluster{a, b}},
		"all are new":    {after: []*source.Cluster{a, b}, changed: []*source.Cluster{a, b}},
		"all are gone":   {before: []*source.Cluster{a, b}, after: []*source.Cluster{}, removed: []*source.Cluster{a, b}},
		"one is another": {before: []*source.Cluster{a, b, c}, after: []*source.Cluster{a, other, c}, changed: []*source.Cluster{other}},
		"one comes":      {before: []*source.Cluster{a, c}, after: []*source.Cluster{a, b, c}, changed: []*source.Cluster{b}},
		"one goes":       {before: []*source.Cluster{a, b, c}, after: []*source.Cluster{b, c}, removed: []*source.Cluster{a}},
		"one for another": {
			before: []*source.Cluster{a, c}, after: []*source.Cluster{b, c},
			changed: []*source.Cluster{b}, removed: []*source.Cluster{a},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed, removed := source.Changes(test.before, test.after)
			same := cmp.Comparer(func(a, b *source.Cluster) bool { return a == b })
			if diff := cmp.Diff([][]*source.Cluster{test.changed, test.removed}, [][]*source.Cluster{changed, removed}, same); diff != "" {
				t.Error(diff)
			}
			with := map[string]*source.Cluster{}
			for _, c := range removed {
				with[c.Name] = nil
			}
			for _, c := range changed {
				with[c.Name] = c
			}
			if diff := cmp.Diff(test.after, source.Amend(test.before, with), same); diff != "" {
				t.Error(diff)
			}
		})
	}
}
