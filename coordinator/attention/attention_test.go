package attention_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/coordinator/attention"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestNothingNeedsAttentionWhenAllIsWell(t *testing.T) {
	f := attention.Facts{
		Clusters: []attention.Group{{Name: "web", Endpoints: 3, Down: 1, Up: 2, Since: noon}, {Name: "new", Endpoints: 3, Unknown: 3}},
		Zones:    []attention.Group{{Name: "eu/a", Endpoints: 3}, {Name: "eu/b", Endpoints: 2, Down: 1}},
	}
	if all := attention.Of(&f); len(all) != 0 {
		t.Errorf("one endpoint of three is down: %+v", all)
	}
}

// TestWorstFirst: each fact gives its item, in the order of what matters.
func TestWorstFirst(t *testing.T) {
	at := func(name string) attention.Named {
		return attention.Named{Name: name, Reason: "why " + name, Since: noon}
	}
	f := attention.Facts{
		Clusters: []attention.Group{
			{Name: "half", Endpoints: 4, Down: 2, Up: 2, Since: noon}, {Name: "idle", Endpoints: 4, Down: 3, LastUp: noon}, {Name: "it's", Endpoints: 1, Down: 1, Since: noon}, {Name: "big", Endpoints: 5, Down: 5, Since: noon},
		},
		Zones:     []attention.Group{{Name: "eu/a", Endpoints: 6, Down: 6, Since: noon}, {Name: "eu/b", Endpoints: 4}, {Name: "eu/c", Endpoints: 1, Down: 1}},
		Unchecked: []attention.Named{at("db"), at("cache")},
		NotReady:  at(""), Replication: attention.Replication{NoLeader: at(""), EngineLost: at(""), Lost: []attention.Named{at("hdsd-3")}, Differ: []attention.Named{at("hdsd-2")}}, Held: 1, HeldSince: noon,
		Checkers: attention.Checkers{Doubted: []attention.Named{at("c1")}, Silent: []attention.Named{at("c2")}, Blind: []attention.Named{at("c3")}},
		Refusing: at(""), Broken: []attention.Named{at("file")}, Shrunk: []attention.Named{at("mesh")}, History: at(""), Frozen: at(""), Waiting: at("caller a"), WaitingAnswers: at("caller b"), ProbeLimit: at(""),
	}
	var got []string
	last := attention.NoCheckers
	for _, i := range attention.Of(&f) {
		if last.Compare(i.Kind) > 0 || i.Kind.Compare("OF_A_NEWER_RELEASE") >= 0 {
			t.Errorf("%s comes after %s, but compares less", i.Kind, last)
		}
		last = i.Kind
		if !i.Since.Equal(noon) {
			t.Errorf("%s since %s", i.Kind, i.Since)
		}
		got = append(got, string(i.Kind)+" "+i.Cluster+i.Zone+i.Name+": "+i.Command)
	}
	want := []string{
		"NOT_READY : hdsd clients",
		"NO_LEADER : hdsd replicas",
		"ENGINE_LOST : hdsd replicas",
		"CLUSTER_DOWN big: hdsd describe cluster big",
		`CLUSTER_DOWN it's: hdsd describe cluster 'it'\''s'`,
		"NO_HEALTHY_ENDPOINT idle: hdsd describe cluster idle",
		"ZONE_DOWN eu/a: hdsd endpoints --unhealthy --locality=eu/a",
		"CLUSTER_HALF_DOWN half: hdsd describe cluster half",
		"NOT_CHECKED db: hdsd describe cluster db",
		"NOT_CHECKED cache: hdsd describe cluster cache",
		"REPLICA_LOST hdsd-3: hdsd replicas",
		"HEALTH_HELD : hdsd endpoints",
		"CHECKER_DOUBTED c1: hdsd describe checker c1",
		"CHECKER_SILENT c2: hdsd describe checker c2",
		"CHECKER_BLIND c3: hdsd describe checker c3",
		"DATA_PLANES_REFUSING : hdsd clients",
		"SOURCE_BROKEN file: hdsd source list",
		"SHRINKAGE_HELD mesh: hdsd source list",
		"REPLICAS_DIFFER hdsd-2: hdsd source list",
		"HISTORY_FAILING : hdsd history --newest-first --limit 20",
		"MESSAGES_WAIT : hdsd checkers",
		"MESSAGES_WAIT : hdsd clients",
		"PROBE_LIMIT_REACHED : hdsd clusters",
		"FROZEN : hdsd freeze --show",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	f.Unwatched = noon
	all := attention.Of(&f)
	if all[0].Kind != attention.NoCheckers || all[0].Command != "hdsd checkers" {
		t.Errorf("first comes %+v", all[0])
	}
	for _, i := range all {
		if i.Kind == attention.HealthHeld || i.Kind == attention.NotChecked {
			t.Error("what is held or not checked without checkers is told twice")
		}
	}
	f = attention.Facts{Unchecked: slices.Repeat([]attention.Named{at("db")}, 11)}
	if all := attention.Of(&f); len(all) != 1 || all[0].Command != "hdsd clusters" {
		t.Errorf("many clusters that are not checked give %+v", all)
	}
}

// TestTroublesOfReplicas say that traffic is not affected, and give the reason.
func TestTroublesOfReplicas(t *testing.T) {
	f := attention.Facts{Replication: attention.Replication{
		NoLeader: attention.Named{Reason: "most of etcd is away"}, EngineLost: attention.Named{Reason: "connection refused"},
		Lost: []attention.Named{{Name: "hdsd-3", Reason: "its session in etcd has ended"}}, Differ: []attention.Named{{Name: "hdsd-2", Reason: "pay, web"}},
	}}
	items := attention.Of(&f)
	if last := items[len(items)-1]; last.Kind.OfReplica() || !strings.Contains(last.Text, "replica hdsd-2 and the leader have different clusters (pay, web): ") {
		t.Errorf("%+v", last)
	}
	for i, want := range [][]string{{"most of etcd is away", "last health stays and checks go on"}, {"connection refused", "keep the last health"}, {"hdsd-3 is gone: its session", "traffic is not affected"}} {
		for _, part := range want {
			if !strings.Contains(items[i].Text, part) {
				t.Errorf("%s: without %q: %s", items[i].Kind, part, items[i].Text)
			}
		}
		if !items[i].Kind.OfReplica() {
			t.Errorf("%s is not about a replica", items[i].Kind)
		}
	}
	if attention.NoCheckers.OfReplica() || attention.Frozen.OfReplica() || !attention.HistoryFailing.OfReplica() {
		t.Error("what is about one replica, and what about all")
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		endpoints, down, up, observed int
		want                          attention.State
	}{
		{3, 0, 3, 3, attention.OK}, {3, 0, 1, 3, attention.OK}, {3, 1, 2, 3, attention.SomeDown}, {4, 2, 2, 4, attention.HalfDown}, {3, 2, 1, 1, attention.HalfDown},
		{3, 0, 0, 3, attention.NoneHealthy}, {3, 2, 0, 3, attention.NoneHealthy},
		{3, 3, 0, 1, attention.AllDown}, {3, 3, 0, 0, attention.Unobserved}, {3, 0, 0, 0, attention.Unobserved},
	} {
		if got := attention.StateOf(c.endpoints, c.down, c.up, c.observed); got != c.want {
			t.Errorf("%+v is %d", c, got)
		}
	}
}
