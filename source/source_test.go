package source_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"hdsd/source"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"*", "", true},
		{"*", "anything", true},
		{"", "", true},
		{"", "a", false},
		{"legacy-*", "legacy-", true},
		{"legacy-*", "legacy", false},
		{"*-eu", "pay-eu-eu", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"?", "é", true},
		{"??", "é", false},
		{"*??", "é", false},
		{"a.c", "abc", false},
		{"[a]", "a", false},
		{"**a**", "bab", true},
	}
	for _, test := range tests {
		if got := source.Match(test.glob, test.name); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.glob, test.name, got)
		}
	}
}

func TestMatchAgreesWithRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab*?é]{0,8}`).Draw(t, "glob")
		name := rapid.StringMatching(`[abé]{0,8}`).Draw(t, "name")
		pattern := strings.NewReplacer("*", ".*", "?", ".").Replace(glob)
		want := regexp.MustCompile("^" + pattern + "$").MatchString(name)
		if got := source.Match(glob, name); got != want {
			t.Errorf("Match(%q, %q) = %v", glob, name, got)
		}
	})
}

func assignment(address string) *source.Assignment {
	return source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: address})
}

func checks(seconds int64) []*corev3.HealthCheck {
	return []*corev3.HealthCheck{{Interval: &durationpb.Duration{Seconds: seconds}}}
}

func inline(from, name, endpoints string) *source.Cluster {
	return &source.Cluster{
		Source: from, Name: name, ServiceName: name, Config: &clusterv3.Cluster{Name: name}, Assignment: assignment(endpoints), File: from + ".yaml", Line: 1,
	}
}

func eds(from, name, service string, a *source.Assignment) *source.Cluster {
	return &source.Cluster{
		Source: from, Name: name, ServiceName: service, Assignment: a, File: from + ".yaml", Line: 1,
		Config: &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}},
	}
}

func lone(from, name, endpoints string) *source.Cluster {
	return &source.Cluster{Source: from, Name: name, ServiceName: name, Assignment: assignment(endpoints), File: from + ".yaml", Line: 1}
}

// bad is a cluster, or an assignment alone, that could not be read.
func bad(from, name string, alone bool) *source.Cluster {
	return &source.Cluster{Source: from, Name: name, ServiceName: name, Lone: alone, Rejected: "bad", File: from + ".yaml", Line: 1}
}

func set(name string, clusters ...*source.Cluster) *source.Set {
	return &source.Set{Source: name, Clusters: clusters}
}

// describe puts a catalogue into lines.
func describe(c *source.Catalog) []string {
	var lines []string
	for _, each := range c.Clusters {
		line := each.Source + " " + each.Name + " " + each.Assignment.Message().GetClusterName()
		for _, check := range each.HealthChecks {
			line += " " + check.GetInterval().AsDuration().String()
		}
		if each.EndpointSource() != each.Source {
			line += " from " + each.EndpointSource()
		}
		if each.Rejected != "" {
			line += " !"
		}
		lines = append(lines, line)
	}
	for _, problem := range c.Problems {
		lines = append(lines, problem.String())
	}
	return lines
}

func TestMerge(t *testing.T) {
	shared := assignment("s")
	tests := map[string]struct {
		sets     []*source.Set
		defaults []source.DefaultHealthChecks
		want     []string
	}{
		"the first source wins": {
			sets: []*source.Set{set("a", inline("a", "web", "1")), nil, set("b", inline("b", "db", "2"), inline("b", "web", "3"))},
			want: []string{"b db 2", "a web 1", `b.yaml:1: web: source "a", which comes first, has a cluster of this name too (a.yaml:1): the one of source "b" is left out`},
		},
		"defaults": {
			sets: []*source.Set{set("a", inline("a", "db", "1"), inline("a", "web", "2"), inline("a", "web2", "3"))},
			defaults: []source.DefaultHealthChecks{
				{Glob: "web?", HealthChecks: checks(1)}, {Glob: "web*", HealthChecks: checks(2)},
			},
			want: []string{"a db 1", "a web 2 2s", "a web2 3 1s"},
		},
		"endpoints from another source": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), set("b", lone("b", "other", "2"), lone("b", "svc", "1"))},
			want: []string{"b other 2", "a web 1 from b"},
		},
		"endpoints from another source's cluster": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), set("b", eds("b", "theirs", "svc", shared)), set("c", lone("c", "svc", "3"))},
			want: []string{"c svc  !", "b theirs s", "a web s from b", `c.yaml:1: svc: cluster "web" (a.yaml:1) has other endpoints under the service name "svc" already: give one of them another name`},
		},
		"the same cluster in another source, with endpoints": {
			sets: []*source.Set{set("a", eds("a", "web", "web", nil)), set("b", eds("b", "web", "web", shared))},
			want: []string{"a web s from b", `b.yaml:1: web: source "a", which comes first, has a cluster of this name too (a.yaml:1): the one of source "b" is left out`},
		},
		"one assignment in two sources": {
			sets: []*source.Set{set("a", eds("a", "x", "svc", shared)), set("b", eds("b", "y", "svc", assignment("s")))},
			want: []string{"a x s", "b y s from a"},
		},
		"endpoints that a source may have that was not read": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), {Source: "b", Awaited: true}},
			want: []string{"a web "},
		},
		"a mistake in the assignment of another source": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), set("b", bad("b", "svc", true))},
			want: []string{"a web  !"},
		},
		"a mistake in the assignment of one of two sources": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), set("b", bad("b", "svc", true)), set("c", lone("c", "svc", "1"))},
			want: []string{"b svc  !", "a web 1 from c"},
		},
		"a mistake in a cluster that is called like it": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil)), set("b", bad("b", "svc", false))},
			want: []string{"b svc  !", "a web ", "a.yaml:1: web: no source has endpoints for it: it needs a ClusterLoadAssignment with cluster_name: svc"},
		},
		"no endpoints anywhere": {
			sets: []*source.Set{set("a", eds("a", "web", "svc", nil))},
			want: []string{"a web ", "a.yaml:1: web: no source has endpoints for it: it needs a ClusterLoadAssignment with cluster_name: svc"},
		},
		"one assignment for two clusters": {
			sets: []*source.Set{set("a", eds("a", "x", "svc", shared), eds("a", "y", "svc", assignment("s")))},
			want: []string{"a x s", "a y s"},
		},
		"two assignments of one service name": {
			sets: []*source.Set{set("a", inline("a", "svc", "1"), eds("a", "x", "svc", shared))},
			want: []string{"a svc  !", "a x s", `a.yaml:1: svc: cluster "x" (a.yaml:1) has other endpoints under the service name "svc" already: give one of them another name`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(source.Merge(nil, test.sets, test.defaults))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRejectionsNameNoOthers: who may see a cluster may not see others, and the names of sources.
func TestRejectionsNameNoOthers(t *testing.T) {
	merged := source.Merge(nil, []*source.Set{
		set("other-source", eds("other-source", "secret", "svc", assignment("s"))), set("c", lone("c", "svc", "3")),
	}, nil)
	rejected := merged.Clusters[slices.IndexFunc(merged.Clusters, func(c *source.Cluster) bool { return c.Name == "svc" })].Rejected
	if rejected == "" || strings.Contains(rejected, "secret") || strings.Contains(rejected, "other-source") {
		t.Errorf("it is rejected because %q", rejected)
	}
}

func TestMergeKeepsPointers(t *testing.T) {
	first := set("a", eds("a", "web", "svc", nil), inline("a", "x", "1"))
	second := set("b", lone("b", "svc", "2"))
	defaults := func(seconds int64) []source.DefaultHealthChecks {
		return []source.DefaultHealthChecks{{Glob: "web", HealthChecks: checks(seconds)}}
	}
	before := source.Merge(nil, []*source.Set{first, second}, defaults(1))
	same := source.Merge(before, []*source.Set{first, second}, defaults(1))
	if before.Clusters[0] != same.Clusters[0] || before.Clusters[1] != same.Clusters[1] {
		t.Error("pointers changed though nothing did")
	}
	if same.Clusters[1] != first.Clusters[1] || same.Clusters[0] == first.Clusters[0] {
		t.Error("a cluster is copied exactly when something is added")
	}
	other := source.Merge(same, []*source.Set{first, second}, defaults(2))
	if other.Clusters[0] == same.Clusters[0] || other.Clusters[1] != same.Clusters[1] {
		t.Error("other defaults make another cluster, and only where they match")
	}
	moved := source.Merge(other, []*source.Set{first, set("b", lone("b", "svc", "3"))}, defaults(2))
	if moved.Clusters[0] == other.Clusters[0] {
		t.Error("other endpoints make another cluster")
	}
	if first.Clusters[0].Assignment != nil || first.Clusters[0].HealthChecks != nil {
		t.Error("the source's own cluster was changed")
	}
}
