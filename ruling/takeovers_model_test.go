package ruling_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/ruling"
	"hdsd/source"
)

// drawAssignment has the addresses in two localities, each of them checked or not.
func drawAssignment(t *rapid.T, service string) *source.Assignment {
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: service}
	for _, zone := range []string{"a", "b"} {
		group := sourceOf(service, addresses...).Assignment.Message().GetEndpoints()[0]
		group.Locality.Zone = zone
		group.LbEndpoints = slices.DeleteFunc(group.GetLbEndpoints(), func(e *endpointv3.LbEndpoint) bool {
			is := rapid.SampledFrom([]string{"checked", "checked", "absent", "absent", "excluded", "disabled"}).Draw(t, "is")
			switch is {
			case "excluded":
				e.GetEndpoint().GetAddress().GetSocketAddress().NetworkNamespaceFilepath = "/run/netns/x"
			case "disabled":
				e.GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{DisableActiveHealthCheck: true}
			}
			return is == "absent"
		})
		assignment.Endpoints = append(assignment.Endpoints, group)
	}
	return source.EncodeAssignment(assignment)
}

// drawCluster has an assignment that other clusters may share.
func drawCluster(t *rapid.T, name string, assignment *source.Assignment) *catalog.Cluster {
	rarely := func(what string) bool { return rapid.IntRange(0, 4).Draw(t, what) == 0 }
	from := sourceOf(name)
	from.ServiceName, from.Assignment = assignment.Message().GetClusterName(), assignment
	policy := &configv1.Policy{ClusterNameGlob: name}
	if rarely("shadow") {
		policy.Mode = configv1.Mode_SHADOW.Enum()
	}
	if rarely("elsewhere") {
		policy.Checkers = &configv1.CheckerSelector{Metadata: map[string]string{"vpc": "blue"}}
	}
	if rarely("by default_health_checks") {
		from.Config.HealthChecks = nil
	}
	if rarely("ignores new") {
		from.Config.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{IgnoreNewHostsUntilFirstHc: true}
	}
	return catalog.Prepare(from, catalog.NewRules(&configv1.Config{
		Policies: []*configv1.Policy{policy},
		Sources:  []*configv1.Source{{Name: from.Source, UpstreamHealth: rapid.SampledFrom([]configv1.UpstreamHealth{0, 1, 2}).Draw(t, "upstream_health")}},
	}))
}

// check compares what the table counts, and what data planes have, with counting and
// publishing everything anew.
func (l *lab) check(t *rapid.T) {
	for _, name := range l.table.Names() {
		k, got := l.table.Cluster(name), l.table.Takeover(name)
		var want struct{ unjudged, stranded int }
		for _, hash := range k.Hashes {
			id, _ := l.table.Find(hash)
			if !l.table.Ruling(id).Judged {
				want.unjudged++
			}
			if l.stranded[id] {
				want.stranded++
			}
		}
		if got.Unjudged != want.unjudged || got.Stranded != want.stranded || got.Since.IsZero() != (want.unjudged+want.stranded == 0) {
			t.Fatalf("%s: %+v, want %+v", name, got, want)
		}
	}
	anew := l.table.Republished()
	for _, k := range anew.Update.Clusters {
		if name := k.Message.GetName(); !proto.Equal(k.Message, l.clusters[name]) {
			t.Fatalf("data planes have cluster %v, want %v", l.clusters[name], k.Message)
		}
	}
	if len(anew.Update.Assignments) != len(l.assignments) {
		t.Fatalf("data planes have %d assignments, want %d", len(l.assignments), len(anew.Update.Assignments))
	}
	counts := map[health.EndpointID]bool{}
	for _, a := range anew.Update.Assignments {
		for _, id := range slices.Concat(slices.Concat(a.IDs...)...) {
			counts[id] = true
		}
		has := l.assignments[a.Name]
		if !bytes.Equal(a.Wire, has.Wire) {
			t.Fatalf("data planes have assignment %v, want %v", has.Message(), a.Message())
		}
		if has.Overruled != a.Overruled || !reflect.DeepEqual(has.IDs, a.IDs) {
			t.Fatalf("data planes have %v %v of assignment %s, want %v %v", has.IDs, has.Overruled, a.Name, a.IDs, a.Overruled)
		}
	}
	for _, h := range slices.Concat(anew.Health, anew.Withdrawn) {
		if counts[h.ID] && l.health[h.ID] != h.Status {
			k, index := l.table.At(h.ID)
			t.Fatalf("endpoint %d of %s is published as %v, want %v", index, k.Source.Name, l.health[h.ID], h.Status)
		}
	}
	for k := range l.table.Clusters() {
		for i := range k.Endpoints {
			e := &k.Endpoints[i]
			p, is := l.table.Published(k, e)
			if !is {
				continue
			}
			if got, ok := l.publishedIn(k.Source.ServiceName, e.Key()); ok && got != p.Status {
				t.Fatalf("%v is shown as %v, and data planes have %v", e.Key(), p.Status, got)
			}
		}
	}
}

// TestTakeoversCountRight: whatever comes in whatever order, the table counts what clusters
// lack as counted anew, data planes have what they would get anew, and what lacks nothing is
// taken over in time.
func TestTakeoversCountRight(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLab(t)
		present := map[string]*catalog.Cluster{}
		apply := func(removed []string, changed ...*catalog.Cluster) {
			for _, name := range removed {
				delete(present, name)
			}
			for _, k := range changed {
				present[k.Source.Name] = k
			}
			effects := l.table.Apply(l.now, ruling.Change{Removed: removed, Changed: changed, Answered: map[string]bool{"local": true}, Complete: true})
			l.do(effects)
			l.do(l.table.Announce(l.now, effects.Unannounced))
		}
		endpoint := func(t *rapid.T) (key health.Endpoint) {
			var all []health.Endpoint
			for _, name := range l.table.Names() {
				for i := range present[name].Hashes {
					all = append(all, present[name].Checked.Key(i))
				}
			}
			if len(all) == 0 {
				t.Skip("nothing is checked")
			}
			return rapid.SampledFrom(all).Draw(t, "endpoint")
		}
		l.serve()
		vote := func(t *rapid.T) { l.vote(endpoint(t), rapid.SampledFrom([]health.Status{up, down}).Draw(t, "to")) }
		strand := func(stranded bool) func(*rapid.T) {
			return func(t *rapid.T) {
				key := endpoint(t)
				if id, _ := l.table.Find(key.Hash()); l.stranded[id] != stranded {
					l.strand(stranded, key)
				}
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"": l.check,
			"change": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cluster")
				apply(nil, drawCluster(t, name, drawAssignment(t, name)))
			},
			"share": func(t *rapid.T) {
				assignment := drawAssignment(t, "shared")
				apply(nil, drawCluster(t, "c", assignment), drawCluster(t, "d", assignment))
			},
			"remove": func(t *rapid.T) {
				if len(present) > 0 {
					apply([]string{rapid.SampledFrom(slices.Sorted(maps.Keys(present))).Draw(t, "cluster")})
				}
			},
			"vote": vote, "vote again": vote, "strand": strand(true), "free": strand(false),
			"wait":  func(*rapid.T) { l.wait(2 * time.Second) },
			"sleep": func(*rapid.T) { l.wait(6 * time.Minute) },
			"freeze": func(t *rapid.T) {
				_, _, effects := l.table.Freeze(l.now, "ann", "moving", rapid.Bool().Draw(t, "hold"))
				l.do(effects)
			},
			"unfreeze": func(*rapid.T) { _, effects := l.table.Unfreeze("ann"); l.do(effects) },
			"override": func(t *rapid.T) {
				key := endpoint(t)
				_ = l.override(rapid.SampledFrom([]health.Endpoint{key, {Cluster: key.Cluster}, {Address: key.Address}}).Draw(t, "scope"), rapid.SampledFrom([]health.Status{up, drained}).Draw(t, "to"), 0)
			},
			"clear": func(t *rapid.T) {
				_, effects, _ := l.table.ClearOverrides(l.now, health.Endpoint{}, true, "ann")
				l.do(effects)
			},
			"restart": func(t *rapid.T) {
				l.start()
				l.say(slices.Collect(maps.Values(present))...)
				l.do(l.table.Start(l.now))
				l.do(l.table.Settle(l.now))
			},
			"long": func(t *rapid.T) {
				if l.table.Frozen() != nil {
					t.Skip("frozen")
				}
				l.wait(6 * time.Minute)
				for _, name := range l.table.Names() {
					if got := l.table.Takeover(name); got.HasOwn && got.Done == (got.Unjudged+got.Stranded > 0) {
						t.Fatalf("%s: after a long time %+v", name, got)
					}
				}
			},
		})
	})
}
