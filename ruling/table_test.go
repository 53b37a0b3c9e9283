package ruling_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/ruling"
	"hdsd/source"
)

var a1, a2 = keyOf("web", addresses[0]), keyOf("web", addresses[1])

func TestAVerdictIsPublishedAndRecorded(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	l.wantPublished(a1, unknown)
	l.vote(a1, down)
	l.wantPublished(a1, down)
	l.wantPublished(a2, unknown)
	l.wantLast(unknown, down, "3 of 3 checkers say UNHEALTHY")
	if counts := l.table.Counts(); counts[down] != 1 || counts[unknown] != 2 || l.table.Len() != 3 {
		t.Errorf("counted are %v", counts)
	}
}

// TestTheLogTellsWhatAnOverrideReplaces covers the override of the same scope, and no other one.
func TestTheLogTellsWhatAnOverrideReplaces(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	set := func(scope health.Endpoint, reason string) *log.Override {
		t.Helper()
		_, _, effects, err := l.table.SetOverride(l.now, log.Override{Scope: scope, Status: drained, Author: "ann", Reason: reason})
		if err != nil || len(effects.Decisions) == 0 || len(effects.Decisions[0].Overrides) != 1 {
			t.Fatalf("%+v, %v", effects, err)
		}
		return effects.Decisions[0].Overrides[0].Replaced
	}
	if replaced := set(health.Endpoint{Cluster: "web"}, "kernel"); replaced != nil {
		t.Errorf("the first override replaces %+v", replaced)
	}
	if replaced := set(a1, "kernel"); replaced != nil {
		t.Errorf("an override of one endpoint replaces %+v", replaced)
	}
	before := l.now
	l.now = l.now.Add(time.Minute)
	want := log.Override{Scope: a1, Status: drained, Author: "ann", Reason: "kernel", Since: before}
	if replaced := set(a1, "disk"); replaced == nil || *replaced != want {
		t.Errorf("it replaces %+v, want %+v", replaced, want)
	}
	if _, effects, err := l.table.ClearOverrides(l.now, a1, false, "ann"); err != nil || effects.Decisions[0].Overrides[0].Replaced != nil {
		t.Errorf("an end replaces %+v, %v", effects.Decisions, err)
	}
}

func TestAnOverrideReplacesTheVerdict(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	l.vote(a1, up)
	if err := l.override(a1, drained, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.wantPublished(a1, drained)
	l.wantLast(up, drained, "drained by ann: kernel (until 2026-01-02T03:05:05Z)")
	l.vote(a1, down)
	l.wantPublished(a1, drained)
	if l.stored.Voted[a1.Hash()].Status != down || len(l.transitions) != 2 {
		t.Errorf("stored are %v, recorded %v", l.stored.Voted, l.transitions)
	}
	l.now = l.now.Add(time.Minute)
	if due, ok := l.table.NextDeadline(); !ok || !due.Equal(l.now) {
		t.Errorf("it is due at %v, %t", due, ok)
	}
	l.do(l.table.Expire(l.now))
	l.wantPublished(a1, down)
	l.wantLast(drained, down, "no longer drained (expired): 3 of 3 checkers say UNHEALTHY")
	if _, ok := l.table.NextDeadline(); ok || len(l.stored.Voted)+len(l.stored.Overrides) > 0 {
		t.Errorf("stored are %v, %v", l.stored.Voted, l.stored.Overrides)
	}
}

func TestWhatCannotBeOverriddenIsRefused(t *testing.T) {
	l := newLab(t)
	plain := sourceOf("plain", addresses[0])
	plain.HealthChecks, plain.Config.HealthChecks = nil, nil
	l.serve(web("web", addresses[0]), catalog.Prepare(plain, catalog.NewRules(&configv1.Config{})))
	for name, c := range map[string]struct {
		scope    health.Endpoint
		notFound bool
		says     string
	}{
		"no cluster":    {health.Endpoint{Cluster: "nowhere"}, true, `"nowhere"`},
		"no address":    {a2, true, "(" + ruling.TargetOf(a2) + ")"},
		"not checked":   {keyOf("plain", addresses[0]), false, "plain " + addresses[0]},
		"no zone":       {health.Endpoint{Locality: health.Locality{Zone: "z"}}, true, "(in /z)"},
		"plain cluster": {health.Endpoint{Cluster: "plain"}, false, "plain "},
	} {
		err := l.override(c.scope, drained, 0)
		var refusal *ruling.Refusal
		if !errors.As(err, &refusal) || refusal.NotFound != c.notFound || !strings.Contains(refusal.Text, c.says) || len(l.stored.Overrides) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := l.table.ClearOverrides(l.now, a1, false, "bob"); err == nil {
		t.Error("an override that is not there is cleared")
	}
}

func TestThereIsABoundOnOverrides(t *testing.T) {
	l := newLab(t)
	for i := range ruling.MaxOverrides {
		l.stored.Overrides = append(l.stored.Overrides, log.Override{Scope: health.Endpoint{Cluster: "web", Address: fmt.Sprint(i)}})
	}
	l.start()
	l.serve(web("web", addresses...))
	var refusal *ruling.Refusal
	if err := l.override(a1, drained, 0); !errors.As(err, &refusal) || refusal.NotFound {
		t.Errorf("one too many: %v", err)
	}
}

func TestAZoneIsToldWhatItSeesUnlessSomethingStandsAbove(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	id, _ := l.table.Find(a1.Hash())
	want := func(want health.Status) {
		t.Helper()
		if got := l.zones[health.Locality{Zone: "b"}][id]; got != want {
			t.Errorf("zone b is told %v, want %v", got, want)
		}
	}
	l.vote(a1, up)
	l.see("b", a1, down)
	want(down)
	_, _, effects := l.table.Freeze(l.now, "ann", "moving", true)
	l.do(effects)
	want(unknown)
	_, effects = l.table.Unfreeze("ann")
	l.do(effects)
	want(down)
	if err := l.override(a1, up, 0); err != nil {
		t.Fatal(err)
	}
	want(unknown)
	_, effects, err := l.table.ClearOverrides(l.now, a1, false, "bob")
	if err != nil {
		t.Fatal(err)
	}
	l.do(effects)
	want(down)
	l.see("b", a1, unknown)
	want(unknown)
}

// TestAnIdRests so that a vote under way is not taken for one on its successor.
func TestAnIdRests(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses[0]))
	first, _ := l.table.Find(a1.Hash())
	l.vote(a1, up)
	l.say(web("web", addresses[1]))
	if id, _ := l.table.Find(a2.Hash()); id == first {
		t.Error("an id is used again at once")
	}
	if k, _ := l.table.At(first); k != nil {
		t.Error("an id that rests has a cluster")
	}
	l.now = l.now.Add(2 * time.Minute)
	l.say(web("web", addresses[1], addresses[2]))
	if id, _ := l.table.Find(keyOf("web", addresses[2]).Hash()); id != first {
		t.Errorf("the id is not used again: %d", id)
	}
	l.wantPublished(keyOf("web", addresses[2]), unknown)
}

func TestWhatLeavesIsGoneOnceHdsdHasSettled(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	l.vote(a1, down)
	l.start()
	l.say(web("web", addresses...))
	l.do(l.table.Start(l.now))
	l.say(web("web", addresses[1]))
	l.wantLast(unknown, down, "3 of 3 checkers say UNHEALTHY")
	l.say(web("web", addresses...))
	l.wantPublished(a1, down)
	l.say(web("web", addresses[1]))
	l.do(l.table.Settle(l.now))
	l.wantLast(down, unknown, ruling.InNoSource)
	l.say(web("web", addresses...))
	l.wantPublished(a1, unknown)
}

// TestAHiddenClusterIsWaitedFor, whatever hides it.
func TestAHiddenClusterIsWaitedFor(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	l.vote(a1, down)
	l.start()
	hidden := &source.Cluster{Source: "local", Name: "web", ServiceName: "web", Rejected: "no such field"}
	l.serve(catalog.Prepare(hidden, catalog.NewRules(&configv1.Config{})))
	l.wantLast(unknown, down, "3 of 3 checkers say UNHEALTHY")
	l.say(web("web", addresses...))
	l.wantPublished(a1, down)
}

// TestPublishedSaysWhereTheHealthComesFrom unless it is the verdict.
func TestPublishedSaysWhereTheHealthComesFrom(t *testing.T) {
	shadow, theirs := &configv1.Config{Mode: configv1.Mode_SHADOW}, &configv1.Config{
		Sources: []*configv1.Source{{Name: "local", UpstreamHealth: configv1.UpstreamHealth_THEIRS}},
	}
	for name, c := range map[string]struct {
		rules  *configv1.Config
		freeze func(*lab) ruling.Effects
		want   string
	}{
		"verdict": {},
		"shadow":  {rules: shadow, want: "UNKNOWN: shadow: the source says UNKNOWN"},
		"theirs":  {rules: theirs, want: "UNKNOWN: the source says UNKNOWN, and by upstream_health only its word counts"},
		"frozen to the sources": {
			freeze: func(l *lab) ruling.Effects { _, _, e := l.table.Freeze(l.now, "ann", "moving", false); return e },
			want:   "UNKNOWN: frozen by ann: moving; the source says UNKNOWN",
		},
		"frozen to what was held": {
			freeze: func(l *lab) ruling.Effects { _, _, e := l.table.Freeze(l.now, "ann", "moving", true); return e },
			want:   "HEALTHY: frozen by ann: moving; it was HEALTHY when that began",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.serve(prepared(c.rules, "web", addresses...))
			l.vote(a1, up)
			if c.freeze != nil {
				l.do(c.freeze(l))
				l.vote(a1, down)
			}
			k := l.table.Cluster("web")
			e := k.Find(&a1)
			got := ""
			if p, ok := l.table.Published(k, e); ok && p.Status != l.table.HealthOf(e) {
				got = p.Status.String() + ": " + p.Reason()
			}
			if got != c.want {
				t.Errorf("published is %q, want %q", got, c.want)
			}
		})
	}
}

// TestExcludedEndpointHoldsItsVerdict until it leaves its source.
func TestExcludedEndpointHoldsItsVerdict(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", addresses...))
	l.vote(a1, down)
	bad := sourceOf("web", addresses...)
	bad.HealthChecks[0].Interval = nil // no specifier without it
	excluded := catalog.Prepare(bad, catalog.NewRules(&configv1.Config{}))
	if len(excluded.Excluded) == 0 {
		t.Fatal("nothing is excluded")
	}
	l.say(excluded)
	l.wantPublished(a1, down)
	if id, ok := l.table.Find(a1.Hash()); !ok || l.table.Ruling(id).Health != down {
		t.Error("the verdict is not held")
	}
	if _, ok := l.table.Find(a2.Hash()); ok {
		t.Error("an endpoint without a verdict is held")
	}
	l.say()
	l.wantLast(down, unknown, ruling.InNoSource)
}

// model is what the table has to be told of, and what follows for each endpoint.
type model struct {
	shadow    map[string]bool
	overrides map[health.Endpoint]health.Status // of single endpoints
	cluster   map[string]health.Status          // overrides of clusters
	voted     map[health.Endpoint]health.Status // of those that are there
	until     map[health.Endpoint]time.Time     // when overrides expire
	frozen    bool
	held      map[health.Endpoint]health.Status // nil: what the sources say
}

// truth is the health of an endpoint that is there.
func (m *model) truth(key health.Endpoint) health.Status {
	if o, ok := m.overrides[key]; ok {
		return o
	}
	if o, ok := m.cluster[key.Cluster]; ok {
		return o
	}
	return m.voted[key]
}

func (m *model) published(key health.Endpoint) health.Status {
	switch {
	case m.shadow[key.Cluster]:
		return unknown
	case !m.frozen || m.overridden(key):
		return m.truth(key)
	case m.held == nil:
		return unknown
	}
	return m.held[key]
}

// expire ends the overrides whose time is over, unless publishing is frozen.
func (m *model) expire(now time.Time) {
	for scope, until := range m.until {
		if !m.frozen && !now.Before(until) {
			delete(m.until, scope)
			delete(m.overrides, scope)
			if scope.Address == "" {
				delete(m.cluster, scope.Cluster)
			}
		}
	}
}

func (m *model) overridden(key health.Endpoint) bool {
	_, single := m.overrides[key]
	_, whole := m.cluster[key.Cluster]
	return single || whole
}

// TestTableModel does anything in any order and compares what is published, held to be
// true and recorded with a model that looks at everything each time.
func TestTableModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		m := &model{
			shadow: map[string]bool{}, overrides: map[health.Endpoint]health.Status{},
			cluster: map[string]health.Status{}, voted: map[health.Endpoint]health.Status{}, until: map[health.Endpoint]time.Time{},
		}
		var present []*catalog.Cluster
		l.serve()
		statuses := rapid.SampledFrom([]health.Status{up, down, drained})
		anyOf := func(rt *rapid.T) health.Endpoint {
			return keyOf(rapid.SampledFrom([]string{"web", "db"}).Draw(rt, "cluster"), rapid.SampledFrom(addresses).Draw(rt, "address"))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"clusters": func(rt *rapid.T) {
				present = nil
				voted := map[health.Endpoint]health.Status{}
				for _, name := range []string{"web", "db"} {
					m.shadow[name] = rapid.Bool().Draw(rt, "shadow")
					some := rapid.SliceOfDistinct(rapid.SampledFrom(addresses), rapid.ID).Draw(rt, name)
					rules := &configv1.Config{}
					if m.shadow[name] {
						rules.Mode = configv1.Mode_SHADOW
					}
					present = append(present, prepared(rules, name, some...))
					for _, address := range some {
						key := keyOf(name, address)
						voted[key] = m.voted[key]
					}
				}
				m.voted = voted
				l.say(present...)
			},
			"votes": func(rt *rapid.T) {
				key := anyOf(rt)
				if _, ok := m.voted[key]; !ok {
					rt.Skip("not there")
				}
				m.voted[key] = rapid.SampledFrom([]health.Status{up, down}).Draw(rt, "votes")
				l.vote(key, m.voted[key])
			},
			"override": func(rt *rapid.T) {
				key, to := anyOf(rt), statuses.Draw(rt, "status")
				_, there := m.voted[key]
				if rapid.Bool().Draw(rt, "whole cluster") {
					key = health.Endpoint{Cluster: key.Cluster}
					there = false
					for other := range m.voted {
						there = there || other.Cluster == key.Cluster
					}
				}
				lasts := time.Duration(rapid.IntRange(0, 5).Draw(rt, "lasts")) * time.Second
				err := l.override(key, to, lasts)
				if there != (err == nil) {
					rt.Fatalf("%v is there: %t, and an override is refused: %v", key, there, err)
				}
				if err == nil {
					delete(m.until, key)
					if lasts > 0 {
						m.until[key] = l.now.Add(lasts)
					}
				}
				switch {
				case err != nil:
				case key.Address == "":
					m.cluster[key.Cluster] = to
				default:
					m.overrides[key] = to
				}
			},
			"clear": func(rt *rapid.T) {
				key := anyOf(rt)
				_, effects, err := l.table.ClearOverrides(l.now, key, false, "bob")
				if _, ok := m.overrides[key]; ok != (err == nil) {
					rt.Fatalf("%v is overridden: %t, and clearing that is refused: %v", key, ok, err)
				}
				if err == nil {
					delete(m.until, key)
				}
				delete(m.overrides, key)
				l.do(effects)
			},
			"clear all": func(*rapid.T) {
				_, effects, _ := l.table.ClearOverrides(l.now, health.Endpoint{}, true, "bob")
				clear(m.overrides)
				clear(m.cluster)
				clear(m.until)
				l.do(effects)
			},
			"freeze": func(rt *rapid.T) {
				hold := rapid.Bool().Draw(rt, "hold")
				held := m.held
				switch {
				case !hold:
					held = nil
				case held == nil:
					held = map[health.Endpoint]health.Status{}
					for key := range m.voted {
						if !m.shadow[key.Cluster] {
							held[key] = m.voted[key]
						}
					}
				}
				m.frozen, m.held = true, held
				_, _, effects := l.table.Freeze(l.now, "ann", "moving", hold)
				l.do(effects)
			},
			"unfreeze": func(*rapid.T) {
				m.frozen, m.held = false, nil
				_, effects := l.table.Unfreeze("ann")
				l.do(effects)
			},
			"restart": func(*rapid.T) {
				l.start()
				m.expire(l.now)
				l.serve(present...)
			},
			"expire": func(*rapid.T) {
				m.expire(l.now)
				l.do(l.table.Expire(l.now))
			},
			"": func(rt *rapid.T) {
				l.now = l.now.Add(time.Second)
				last := map[health.Endpoint]health.Status{}
				for _, tr := range l.transitions {
					if tr.From != last[tr.Endpoint] {
						rt.Fatalf("%+v follows on %v", tr, last[tr.Endpoint])
					}
					last[tr.Endpoint] = tr.To
				}
				for key := range m.voted {
					if got, want := l.published(key), m.published(key); got != want {
						rt.Fatalf("%v is published as %v, want %v", key, got, want)
					}
					if last[key] != m.truth(key) {
						rt.Fatalf("%v is recorded as %v, want %v", key, last[key], m.truth(key))
					}
				}
				for key, status := range last {
					if _, there := m.voted[key]; !there && status != unknown {
						rt.Fatalf("%v is gone, and recorded as %v", key, status)
					}
				}
				for k := range l.table.Clusters() {
					for i := range k.Endpoints {
						e := &k.Endpoints[i]
						id, ok := l.table.IDOf(e)
						if want, there := l.table.Find(e.Hash()); id != want || ok != there {
							rt.Fatalf("%v has the id %d (%t), want %d (%t)", e.Key(), id, ok, want, there)
						}
					}
				}
				if got := l.table.Len(); got != len(m.voted) {
					rt.Fatalf("%d endpoints have ids, want %d", got, len(m.voted))
				}
			},
		})
	})
}
