package hold

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/source"
	"hdsd/source/sample"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is what a source says: the endpoints of each cluster, as ports.
type world map[string][]int

// set makes a set of a world. Clusters that are as in the set before keep their pointer.
func (w world) set(before *source.Set) *source.Set {
	set := &source.Set{Source: "x"}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		var list []string
		for _, port := range w[name] {
			list = append(list, fmt.Sprintf("10.0.0.1:%d", port))
		}
		c := sample.Web(name, list...)
		if old := before.Find(name); old != nil && maps.Equal(addresses(old), addresses(c)) {
			c = old
		}
		set.Clusters = append(set.Clusters, c)
	}
	return set
}

// shown is the content of a set, for comparison.
func shown(set *source.Set) map[string][]string {
	all := map[string][]string{}
	for _, c := range set.Clusters {
		all[c.Name] = slices.Sorted(maps.Keys(addresses(c)))
	}
	return all
}

// many makes a world of n clusters with m endpoints each.
func many(n, m int) world {
	w := world{}
	for i := range n {
		for j := range m {
			w[fmt.Sprintf("c%02d", i)] = append(w[fmt.Sprintf("c%02d", i)], j+1)
		}
	}
	return w
}

var half = Rule{Share: 0.5, For: 5 * time.Minute}

func TestAnEmptyAnswerIsHeld(t *testing.T) {
	h := New(half)
	full := many(10, 10).set(nil)
	if h.Apply(start, full, nil) != full {
		t.Fatal("a first set is handed on as it is")
	}
	empty := &source.Set{Source: "x"}
	got := h.Apply(start.Add(time.Second), empty, nil)
	if len(got.Clusters) != 10 {
		t.Fatalf("%d clusters are in use", len(got.Clusters))
	}
	s := h.Status()
	if s.Clusters != 10 || s.Endpoints != 100 || s.Held == nil || s.Held.Clusters != 0 || s.Held.Endpoints != 0 ||
		!s.Held.Since.Equal(start.Add(time.Second)) || !s.Held.AcceptsAt.Equal(start.Add(301*time.Second)) || s.Held.Revision == "" {
		t.Errorf("%+v, held %+v", s, s.Held)
	}
	if again := h.Apply(start.Add(300*time.Second), empty, nil); again != got {
		t.Error("the same answer makes another set")
	}
	if got = h.Apply(start.Add(301*time.Second), empty, nil); got != empty || h.Status().Held != nil {
		t.Errorf("%d clusters are in use after its time", len(got.Clusters))
	}
}

func TestAFullAnswerEndsTheHold(t *testing.T) {
	h := New(half)
	full := many(4, 3).set(nil)
	h.Apply(start, full, nil)
	h.Apply(start, &source.Set{Source: "x"}, nil)
	if got := h.Apply(start, full, nil); got != full || h.Status().Held != nil || !h.Due().IsZero() {
		t.Errorf("%+v", h.Status())
	}
}

// TestWhatIsHeld takes something away of 4 clusters with 10 endpoints each, and one of 3.
func TestWhatIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(w world)
		inUse, accepted int // endpoints
	}{
		"nothing": {func(world) {}, 43, -1},
		"half of the clusters": {func(w world) { // each has ten endpoints, which counts by itself
			delete(w, "c00")
			delete(w, "c01")
		}, 43, 23},
		"a small cluster":                {func(w world) { delete(w, "small") }, 40, -1},
		"half of a large cluster":        {func(w world) { w["c00"] = w["c00"][5:] }, 38, -1},
		"more than half of it":           {func(w world) { w["c00"] = w["c00"][6:] }, 43, 37},
		"most of a small cluster":        {func(w world) { w["small"] = w["small"][2:] }, 41, -1},
		"others in place of a cluster's": {func(w world) { w["c00"] = []int{101, 102} }, 45, 35},
		"more than half of all": {func(w world) {
			for _, name := range []string{"c00", "c01", "c02", "c03"} {
				w[name] = w[name][5:]
			}
			w["small"] = nil
		}, 43, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := many(4, 10)
			w["small"] = []int{1, 2, 3}
			h := New(half)
			first := w.set(nil)
			h.Apply(start, first, nil)
			c.change(w)
			h.Apply(start, w.set(first), nil)
			s := h.Status()
			left := -1
			if s.Held != nil {
				left = s.Held.Endpoints
			}
			if s.Endpoints != c.inUse || left != c.accepted {
				t.Errorf("%d in use, %d if accepted; want %d and %d", s.Endpoints, left, c.inUse, c.accepted)
			}
			h.Accept()
			if s := h.Status(); s.Held != nil || c.accepted >= 0 && s.Endpoints != c.accepted {
				t.Errorf("after acceptance %+v", s)
			}
		})
	}
}

// TestARollingDeploymentIsNotHeld takes one endpoint away at a time.
func TestARollingDeploymentIsNotHeld(t *testing.T) {
	h, w := New(half), many(1, 20)
	set := w.set(nil)
	h.Apply(start, set, nil)
	for i := range 20 {
		w["c00"] = append(w["c00"][1:], 100+i)
		set = w.set(set)
		if got := h.Apply(start, set, nil); got != set {
			t.Fatalf("step %d is held: %+v", i, h.Status().Held)
		}
	}
}

// TestAnotherEvilAnswerProlongsNothing alternates between two answers that each take away
// most clusters. What neither has goes in time; what either has is never gone.
func TestAnotherEvilAnswerProlongsNothing(t *testing.T) {
	h := New(half)
	full := many(10, 1)
	h.Apply(start, full.set(nil), nil)
	var got *source.Set
	for second := range 301 {
		w := world{"c00": {1}}
		if second%2 == 1 {
			w = world{"c01": {1}}
		}
		got = h.Apply(start.Add(time.Duration(second)*time.Second), w.set(nil), nil)
		if second < 300 && len(got.Clusters) != 10 {
			t.Fatalf("after %d s %d clusters are in use", second, len(got.Clusters))
		}
	}
	if len(got.Clusters) != 2 {
		t.Errorf("%d clusters are in use after the time", len(got.Clusters))
	}
}

// TestASlowShrinkageIsHeld takes 40 % of the rest away every 100 ms, of one source or of one of
// its clusters, and every 10 s.
func TestASlowShrinkageIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		clusters int
		every    time.Duration
	}{"of all": {1, 100 * time.Millisecond}, "of one cluster": {4, 100 * time.Millisecond}, "slower": {1, 10 * time.Second}, "by small clusters": {100, time.Second}} {
		t.Run(name, func(t *testing.T) {
			h, w, now := New(half), many(c.clusters, 100), start
			if c.clusters == 100 {
				w = many(100, 1)
			}
			set := w.set(nil)
			h.Apply(now, set, nil)
			size := h.Status().Endpoints
			for range 10 {
				now = now.Add(c.every)
				if w["c00"] = w["c00"][:6*len(w["c00"])/10]; c.clusters == 100 {
					for i := range len(w) * 4 / 10 {
						delete(w, slices.Sorted(maps.Keys(w))[len(w)-1-i/100])
					}
				}
				set = w.set(set)
				h.Apply(now, set, nil)
			}
			s := h.Status()
			if lost := size - s.Endpoints; s.Held == nil || lost == 0 || lost > 50 {
				t.Errorf("%d of %d are gone, held is %+v", lost, size, s.Held)
			}
			if got := h.Apply(now.Add(half.For), set, nil); h.Status().Held != nil || got != set {
				t.Errorf("after its time %+v is held", h.Status().Held)
			}
			w["c00"] = append(w["c00"], 200, 201, 202)
			set = w.set(set)
			h.Apply(now.Add(half.For+time.Second), set, nil)
			w["c00"] = w["c00"][:len(w["c00"])-1]
			if h.Apply(now.Add(half.For+2*time.Second), w.set(set), nil); h.Status().Held != nil {
				t.Error("what was accepted still counts")
			}
		})
	}
}

// TestASlowerScaleDownIsFollowed: a tenth of what there was goes every 75 s.
func TestASlowerScaleDownIsFollowed(t *testing.T) {
	h, w := New(half), many(1, 100)
	set := w.set(nil)
	h.Apply(start, set, nil)
	for i := range 10 {
		w["c00"] = w["c00"][:len(w["c00"])*9/10]
		set = w.set(set)
		if got := h.Apply(start.Add(time.Duration(i)*75*time.Second), set, nil); got != set {
			t.Fatalf("step %d: %d are left, held is %+v", i, len(w["c00"]), h.Status().Held)
		}
	}
}

// TestARestartAfterItsTime leaves a minute to mend it: the clock may be wrong.
func TestARestartAfterItsTime(t *testing.T) {
	full, part := many(4, 10).set(nil), world{"c00": {1}}.set(nil)
	h := New(half)
	h.Apply(start, full, nil)
	h.Apply(start, part, nil)
	ahead := start.AddDate(1, 0, 0)
	again := New(half)
	again.Restore(ahead, h.Save())
	again.Apply(ahead, part, nil)
	if s := again.Status(); s.Endpoints != 40 || s.Held == nil || !s.Held.AcceptsAt.Equal(ahead.Add(time.Minute)) || s.Held.Endpoints != 1 {
		t.Errorf("%+v, held %+v", s, s.Held)
	}
	again.Apply(ahead.Add(59*time.Second), part, nil)
	if s := again.Status(); s.Endpoints != 40 {
		t.Errorf("%+v", s)
	}
	if again.Apply(ahead.Add(time.Minute), part, nil); again.Status().Held != nil {
		t.Error("it is held for longer than a minute")
	}
}

func TestOffIsOff(t *testing.T) {
	for _, rule := range []Rule{{}, {Share: 1, For: time.Minute}, {Share: 0.5}} {
		h := New(rule)
		h.Apply(start, many(4, 4).set(nil), nil)
		empty := &source.Set{Source: "x"}
		if h.Apply(start, empty, nil) != empty {
			t.Errorf("%+v holds", rule)
		}
	}
	h := New(half)
	h.Apply(start, many(4, 4).set(nil), nil)
	empty := &source.Set{Source: "x"}
	h.Apply(start, empty, nil)
	h.Configure(Rule{})
	if h.Apply(start, empty, nil) != empty || h.Status().Held != nil {
		t.Error("what was held is held on after it was turned off")
	}
}

// TestARestart keeps what is held for the rest of its time, whichever state the stored
// resources are in.
func TestARestart(t *testing.T) {
	full := many(4, 10)
	partly := world{"c00": {1, 2}, "c01": nil}
	for name, snapshot := range map[string]world{"of before": full, "of after": partly, "none": {}} {
		t.Run(name, func(t *testing.T) {
			h := New(half)
			h.Apply(start, full.set(nil), nil)
			h.Apply(start, partly.set(nil), nil)
			was := h.Status().Held
			again := New(half)
			again.Restore(start.Add(time.Minute), h.Save())
			stored := snapshot.set(nil)
			stored.Awaited = true
			again.Apply(start.Add(time.Minute), stored, nil)
			again.Apply(start.Add(time.Minute), partly.set(nil), nil)
			if s := again.Status(); s.Clusters != 4 || s.Endpoints != 40 || *s.Held != *was {
				t.Errorf("%+v, held %+v, before the restart %+v", s, s.Held, was)
			}
			if got := again.Apply(start.Add(5*time.Minute), partly.set(nil), nil); fmt.Sprint(shown(got)) != fmt.Sprint(shown(partly.set(nil))) {
				t.Errorf("after its time %v is in use", shown(got))
			}
		})
	}
}

// TestALoneAssignmentThatNobodyWants goes at once, and one that somebody wants is held.
func TestALoneAssignmentThatNobodyWants(t *testing.T) {
	lone := sample.Web("web", "10.0.0.1:1")
	lone.Config, lone.Lone = nil, true
	full, empty := &source.Set{Source: "x", Clusters: []*source.Cluster{lone}}, &source.Set{Source: "x"}
	wanted := true
	asks := func(string) bool { return wanted }
	h := New(half)
	h.Apply(start, full, asks)
	if got := h.Apply(start, empty, asks); len(got.Clusters) != 1 || h.Status().Clusters != 0 || h.Status().Held.Endpoints != 0 {
		t.Errorf("%+v", h.Status())
	}
	wanted = false
	if got := h.Apply(start, empty, asks); len(got.Clusters) != 0 || h.Status().Held != nil {
		t.Errorf("%+v", h.Status())
	}
}

// model is the rule said in another way: items, each a cluster or an endpoint of it.
type model struct {
	inUse map[string]bool
	held  map[string]time.Time
	least time.Time
	log   map[string][]sized // how large a cluster was, and the source (" "), and how many clusters it had ("#")
}

// sized is a size that ended.
type sized struct {
	size int
	slot int
}

// slotOf is the sixtieth of the rule's time since the start.
func slotOf(began, now time.Time) int { return int(now.Sub(began) / (half.For / 60)) }

func (m *model) peak(slot int, name string, is int) int {
	for _, one := range m.log[name] {
		if slot-one.slot <= 60 {
			is = max(is, one.size)
		}
	}
	return is
}

// sizes are those of all clusters, of the source and of its clusters.
func sizes(all map[string]bool) map[string]int {
	n := map[string]int{}
	for item := range all {
		if len(item) == 4 {
			n["#"]++
			n[clusterOf(item)] += 0
			continue
		}
		n[" "]++
		n[clusterOf(item)]++
	}
	return n
}

func items(w world) map[string]bool {
	all := map[string]bool{}
	for name, ports := range w {
		all[name+" "] = true
		for _, port := range ports {
			all[fmt.Sprintf("%s 10.0.0.1:%d", name, port)] = true
		}
	}
	return all
}

func clusterOf(item string) string { return item[:3] }

func (m *model) take(began, now time.Time, says map[string]bool) {
	slot, before, left := slotOf(began, now), sizes(m.inUse), map[string]int{}
	for item := range m.inUse {
		if says[item] {
			left[clusterOf(item)] += min(1, len(item)-4)
			left[" "] += min(1, len(item)-4)
			left["#"] += 1 - min(1, len(item)-4)
		}
	}
	much := func(name string, least int) bool {
		is, peak := before[name], m.peak(slot, name, before[name])
		return peak >= least && left[name] < is && (2*(is-left[name]) > is || 2*(peak-left[name]) > peak)
	}
	kept := map[string]bool{} // clusters of which something is held
	for item := range m.held {
		if says[item] {
			delete(m.held, item)
		} else {
			kept[clusterOf(item)] = true
		}
	}
	all := much("#", 0) || much(" ", 0)
	for item := range m.inUse {
		name := clusterOf(item)
		whole := kept[name] && !says[name+" "]
		if _, known := m.held[item]; !known && !says[item] && (all || much(name, large) || whole) {
			m.held[item] = now
		}
	}
	accepted := map[string]bool{}
	for item, since := range m.held {
		if now.Sub(since) >= half.For && !now.Before(m.least) {
			delete(m.held, item)
			accepted[clusterOf(item)], accepted[" "], accepted["#"] = true, true, true
		}
	}
	for item := range m.held { // an endpoint has its cluster
		if _, held := m.held[clusterOf(item)+" "]; !held && !says[clusterOf(item)+" "] {
			delete(m.held, item)
		}
	}
	m.inUse = maps.Clone(says)
	for item := range m.held {
		m.inUse[item] = true
	}
	m.remember(slot, before, accepted)
}

// remember notes what has become smaller, and forgets where that was accepted.
func (m *model) remember(slot int, before map[string]int, accepted map[string]bool) {
	after := sizes(m.inUse)
	for name, was := range before {
		if is, there := after[name]; !there && name != " " && name != "#" || accepted[name] {
			delete(m.log, name)
		} else if is < was {
			m.log[name] = append(m.log[name], sized{was, slot})
		}
	}
}

// check compares a Hold with the model, for any sequence of worlds.
func check(t *testing.T, next func() uint64) {
	t.Helper()
	h, m := New(half), &model{held: map[string]time.Time{}, log: map[string][]sized{}}
	w, now, began := many(3, 12), start, start
	set := w.set(nil)
	for step := range 30 {
		got := h.Apply(now, set, nil)
		m.take(began, now, items(w))
		have := map[string]bool{}
		for name, list := range shown(got) {
			have[name+" "] = true
			for _, address := range list {
				have[name+" "+address] = true
			}
		}
		if !maps.Equal(have, m.inUse) {
			t.Fatalf("step %d: %v in use, want %v", step, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(m.inUse)))
		}
		s := h.Status()
		count := 0
		for item := range m.inUse {
			if len(item) > 4 {
				count++
			}
		}
		if (s.Held != nil) != (len(m.held) > 0) || s.Clusters != len(got.Clusters) || s.Endpoints != count {
			t.Fatalf("step %d: %+v with %d held, %d clusters, %d endpoints", step, s, len(m.held), len(got.Clusters), count)
		}
		if s.Held != nil && (s.Held.Clusters != len(w) || s.Held.Endpoints != len(items(w))-len(w)) {
			t.Fatalf("step %d: %+v would be left of %d clusters", step, s.Held, len(w))
		}
		if next()%8 == 0 { // a restart keeps what is held
			saved := h.Save()
			h = New(half)
			h.Restore(now, saved)
			began, m.least = now, now.Add(time.Minute)
			clear(m.log)
			stored := w.set(set)
			stored.Awaited = true
			h.Apply(now, stored, nil)
			h.Apply(now, set, nil)
		}
		now = now.Add(time.Duration(next()%120) * time.Second)
		name := fmt.Sprintf("c%02d", next()%4)
		switch next() % 5 {
		case 0:
			delete(w, name)
		case 1:
			w = world{name: {1, 2}}
		case 2:
			w = many(4, int(next()%14))
		default:
			w = maps.Clone(w)
			if ports := w[name]; len(ports) > 0 {
				w[name] = slices.Clone(ports[next()%uint64(len(ports)):])
			} else {
				w[name] = []int{int(next()%20) + 1}
			}
		}
		set = w.set(set)
	}
}

func TestAsTheModel(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		check(t, r.Uint64)
	}
}

func FuzzHold(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		check(t, func() uint64 {
			if at++; at > len(data) {
				return uint64(at)
			}
			return uint64(data[at-1])
		})
	})
}

// TestTheEndOfALeaseIsNotHeld: the source itself said when.
func TestTheEndOfALeaseIsNotHeld(t *testing.T) {
	h, w := New(half), world{"a": {1, 2, 3}}
	first := w.set(nil)
	h.Apply(start, first, nil)
	for _, stale := range []bool{true, false} {
		c := *first.Clusters[0]
		c.Assignment, c.Stale = source.EncodeAssignment(nil), stale
		got := h.Apply(start.Add(time.Second), &source.Set{Source: "x", Clusters: []*source.Cluster{&c}}, nil)
		if held := len(addresses(got.Clusters[0])) > 0; held == stale {
			t.Errorf("stale %t: held %t", stale, held)
		}
		h.Apply(start.Add(2*time.Second), first, nil)
	}
}
