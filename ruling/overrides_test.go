package ruling

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/health"
	"hdsd/log"
)

// scopes draws scopes and endpoints of few names, parts of which are empty.
func scopes(t *rapid.T, label string) health.Endpoint {
	part := rapid.SampledFrom([]string{"", "a", "b"})
	return health.Endpoint{
		Cluster: part.Draw(t, label+" cluster"), Address: part.Draw(t, label+" address"),
		Locality: health.Locality{Region: part.Draw(t, label+" region"), Zone: part.Draw(t, label+" zone"), SubZone: part.Draw(t, label+" sub-zone")},
	}
}

// forLess orders scopes: that for less is larger.
func forLess(a, b health.Endpoint) int {
	named := func(text string) int { return min(len(text), 1) }
	return cmp.Or(
		cmp.Compare(named(a.Address), named(b.Address)), cmp.Compare(named(a.Cluster), named(b.Cluster)), cmp.Compare(named(a.Locality.SubZone), named(b.Locality.SubZone)),
		cmp.Compare(named(a.Locality.Zone), named(b.Locality.Zone)), cmp.Compare(named(a.Locality.Region), named(b.Locality.Region)),
	)
}

// TestOverridesModel compares with looking at every override.
func TestOverridesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o overrides
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		model := map[health.Endpoint]*Override{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				next := &Override{Override: log.Override{Scope: scopes(t, "put")}}
				if next.Scope == (health.Endpoint{}) {
					t.Skip("nothing is named")
				}
				if lasts := rapid.IntRange(0, 20).Draw(t, "lasts"); lasts > 0 {
					next.Until = now.Add(time.Duration(lasts) * time.Second)
				}
				if before := o.put(next); before != model[next.Scope] {
					t.Fatalf("%v is replaced, want %v", before, model[next.Scope])
				}
				model[next.Scope] = next
			},
			"take": func(t *rapid.T) {
				scope := scopes(t, "take")
				if got := o.remove(scope); got != model[scope] {
					t.Fatalf("%v is taken, want %v", got, model[scope])
				}
				delete(model, scope)
			},
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second)
				gone := map[*Override]bool{}
				for _, each := range o.expire(now) {
					gone[each] = true
				}
				for scope, each := range model {
					due := !each.Until.IsZero() && !now.Before(each.Until)
					if due != gone[each] {
						t.Fatalf("%+v at %v: expired %t", each, now, gone[each])
					}
					if due {
						delete(model, scope)
					}
					if !due && !each.Until.IsZero() && (o.expireAt.IsZero() || each.Until.Before(o.expireAt)) {
						t.Fatalf("%+v ends before it is looked at, at %v", each, o.expireAt)
					}
				}
			},
			"": func(t *rapid.T) {
				e := scopes(t, "of")
				var all []*Override
				for scope, each := range model {
					if covers(&scope, &e) {
						all = append(all, each)
					}
				}
				var want *Override
				if len(all) > 0 {
					want = slices.MaxFunc(all, func(a, b *Override) int { return forLess(a.Scope, b.Scope) })
				}
				if got := o.named(e); got != want {
					t.Fatalf("%+v decides %+v, want %+v", got, e, want)
				}
				if len(o.byScope) != len(model) {
					t.Fatalf("%d are there, want %d", len(o.byScope), len(model))
				}
			},
		})
	})
}

func endpoint(cluster, address string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address}
}

// BenchmarkOverridesOf looks for the override of an endpoint among 10,000, of all
// kinds.
func BenchmarkOverridesOf(b *testing.B) {
	var o overrides
	for i := range MaxOverrides {
		e := endpoint(fmt.Sprintf("cluster-%d", i), "10.0.0.1:80")
		o.put(&Override{Override: log.Override{Scope: narrow(&e, 1+i%(scopeKinds-1))}})
	}
	e := endpoint("another", "10.0.0.1:80")
	for b.Loop() {
		o.named(e)
	}
}
