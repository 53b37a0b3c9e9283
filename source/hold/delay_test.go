package hold

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/source"
	"hdsd/source/sample"
)

func setWith(clusters ...*source.Cluster) *source.Set {
	slices.SortFunc(clusters, func(a, b *source.Cluster) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return &source.Set{Source: "x", Clusters: clusters}
}

func changed(c *source.Cluster, change func(a *endpointv3.ClusterLoadAssignment)) *source.Cluster {
	sample.Change(c, change)
	return c
}

// TestWhatAlternates has a cluster change every 100 ms. The first in a cycle comes with
// the start.
func TestWhatAlternates(t *testing.T) {
	web := func() *source.Cluster { return sample.Web("web", "10.0.0.1:80", "10.0.0.2:80") }
	cycle := func(each ...func() *source.Cluster) func(int) *source.Cluster {
		return func(i int) *source.Cluster { return each[i%len(each)]() }
	}
	none := func() *source.Cluster { return nil }
	for name, c := range map[string]struct {
		say   func(i int) *source.Cluster
		waits int // the first change that waits; 0: none does
	}{
		"an endpoint leaves and comes back": {cycle(web, func() *source.Cluster { return sample.Web("web", "10.0.0.2:80") }), 4},
		"an endpoint comes and leaves":      {cycle(web, func() *source.Cluster { return sample.Web("web", "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80") }), 4},
		"its health changes to and fro": {cycle(web, func() *source.Cluster {
			return changed(web(), func(a *endpointv3.ClusterLoadAssignment) {
				a.Endpoints[0].LbEndpoints[1].HealthStatus = corev3.HealthStatus_DRAINING
			})
		}), 4},
		"it moves to and fro": {cycle(web, func() *source.Cluster {
			return changed(web(), func(a *endpointv3.ClusterLoadAssignment) { a.Endpoints[0].Locality.Zone = "b" })
		}), 4},
		"the path of the check changes to and fro": {cycle(web, func() *source.Cluster { return sample.WithPath("web", "/other", "10.0.0.1:80", "10.0.0.2:80") }), 4},
		"the cluster comes and goes":               {cycle(web, none), 4},
		"it is refused to and fro":                 {cycle(web, func() *source.Cluster { c := web(); c.Rejected = "no"; return c }), 4},
		"three paths in turn": {func(i int) *source.Cluster {
			return sample.WithPath("web", fmt.Sprint("/", i%3), "10.0.0.1:80")
		}, 5},
		"another path each time":       {func(i int) *source.Cluster { return sample.WithPath("web", fmt.Sprint("/", i), "10.0.0.1:80") }, 0},
		"another endpoint each time":   {func(i int) *source.Cluster { return sample.Web("web", fmt.Sprint("10.0.0.1:", i+1)) }, 0},
		"the same in another message":  {cycle(web), 0},
		"the endpoints in other order": {cycle(web, func() *source.Cluster { return sample.Web("web", "10.0.0.2:80", "10.0.0.1:80") }), 0},
		"the weight of the locality changes": {cycle(web, func() *source.Cluster {
			return changed(web(), func(a *endpointv3.ClusterLoadAssignment) {
				a.Endpoints[0].LoadBalancingWeight = wrapperspb.UInt32(3)
			})
		}), 0},
		"a rolling restart": {func(i int) *source.Cluster {
			var list []string
			for port := range 40 {
				if i%2 == 0 || port != i/2%40 {
					list = append(list, fmt.Sprint("10.0.0.1:", port+1))
				}
			}
			return sample.Web("web", list...)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, first := NewDelay(), 0
			for i := range 80 {
				set := setWith(sample.Web("other", fmt.Sprint("10.1.0.1:", i+1)))
				if c := c.say(i); c != nil {
					set = setWith(set.Clusters[0], c)
				}
				got := d.Apply(start.Add(time.Duration(i)*100*time.Millisecond), set)
				if got.Find("other") != set.Find("other") {
					t.Fatalf("change %d of another cluster waits", i)
				}
				if got != set && first == 0 {
					first = i
				}
			}
			if first != c.waits || c.waits == 0 && !d.Due().IsZero() {
				t.Errorf("change %d waits, want %d", first, c.waits)
			}
		})
	}
}

// TestAnAlternatingSourceIsFollowedAFewTimesAMinute however fast it is.
func TestAnAlternatingSourceIsFollowedAFewTimesAMinute(t *testing.T) {
	for _, every := range []time.Duration{4 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 7 * time.Second, 29 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			d := NewDelay()
			both := []*source.Set{setWith(sample.Web("web", "10.0.0.1:80")), setWith(sample.WithPath("web", "/other", "10.0.0.1:80"))}
			inUse, followed, longest := d.Apply(start, both[0]).Clusters[0], 0, time.Duration(0)
			for i := 1; time.Duration(i)*every < 3*time.Minute; i++ {
				now := start.Add(time.Duration(i) * every)
				if got := d.Apply(now, both[i%2]).Clusters[0]; got != inUse {
					inUse, followed = got, followed+1
				}
				for _, begun := range d.Begun() {
					longest = max(longest, begun.For)
				}
			}
			if followed > 23 || followed == 0 { // 11 in the first minute, then 6
				t.Errorf("%d changes are followed in 3 minutes", followed)
			}
			if every < 29*time.Second && longest != longestDelay {
				t.Errorf("the longest delay is %s", longest)
			}
		})
	}
}

// TestAMinuteWithoutAReturnEndsIt and what comes then waits no more.
func TestAMinuteWithoutAReturnEndsIt(t *testing.T) {
	d := NewDelay()
	both := []*source.Set{setWith(sample.Web("web", "10.0.0.1:80")), setWith(sample.Web("web", "10.0.0.2:80"))}
	for i := range 100 {
		d.Apply(start, both[i%2])
	}
	if begun := d.Begun(); len(begun) != 1 || begun[0] != (Begun{"web", 3, time.Second}) || !d.Due().Equal(start.Add(time.Second)) {
		t.Fatalf("%+v, due at %s", begun, d.Due())
	}
	if got := d.Apply(start.Add(time.Second), both[1]); got != both[1] || !d.Due().IsZero() {
		t.Error("the latest is not in use after the delay")
	}
	for i := range 2 {
		now := start.Add(time.Second + time.Duration(i+1)*time.Minute)
		if got := d.Apply(now, both[i%2]); got != both[i%2] {
			t.Errorf("change %d waits", i)
		}
	}
	if d.sweep(start.Add(time.Hour)); len(d.byCluster) != 0 || d.parts != 0 {
		t.Errorf("%d clusters are remembered", len(d.byCluster))
	}
}

// TestWhatIsRememberedIsBounded for a source that never says the same.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	d := NewDelay()
	for i := range 12 {
		var list []string
		for j := range 10_000 {
			list = append(list, fmt.Sprintf("10.%d.%d.%d:80", i, j/256, j%256))
		}
		d.Apply(start, setWith(sample.Web("web", list...)))
	}
	if n := len(d.byCluster["web"].parts); n != maxParts || d.parts != n {
		t.Errorf("%d parts are remembered, %d counted", n, d.parts)
	}
}

// TestNothingIsLost says at random times what is random: whatever is in use was said
// within the longest delay, and in the end the latest is in use.
func TestNothingIsLost(t *testing.T) {
	type moment struct {
		set   *source.Set
		until time.Time // when the next came
	}
	waited := 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		d, now := NewDelay(), start
		var past []moment
		var set *source.Set
		check := func(got *source.Set) {
			for _, name := range []string{"a", "b", "c"} {
				if !slices.ContainsFunc(past, func(m moment) bool {
					return m.set.Find(name) == got.Find(name) && (m.until.IsZero() || now.Sub(m.until) < longestDelay)
				}) {
					t.Fatalf("seed %d: what is in use of %s was not said lately", seed, name)
				}
			}
			if got != set {
				waited++
			}
		}
		for range 200 {
			w := world{}
			for _, name := range []string{"a", "b", "c"} {
				for port := range r.IntN(4) {
					w[name] = append(w[name], port+1)
				}
			}
			if len(past) > 0 {
				past[len(past)-1].until = now
			}
			set = w.set(set)
			past = append(past, moment{set: set})
			check(d.Apply(now, set))
			for end := now.Add(time.Duration(r.ExpFloat64() * float64(2*time.Second))); now.Before(end); {
				if now = end; !d.Due().IsZero() && d.Due().Before(end) {
					now = d.Due()
					check(d.Apply(now, set))
				}
			}
		}
		for end := now.Add(longestDelay); !d.Due().IsZero(); {
			if now = d.Due(); now.After(end) {
				t.Fatalf("seed %d: waits for longer than %s", seed, longestDelay)
			}
			d.Apply(now, set)
		}
		if d.Apply(now, set) != set {
			t.Fatalf("seed %d: the latest is not in use", seed)
		}
	}
	if waited == 0 {
		t.Error("nothing waited")
	}
}
