package clusters

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/sample"
)

var (
	start   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ruleSet = catalog.NewRules(&configv1.Config{})
)

// fleet is some replicas, the first of which leads.
type fleet struct {
	*testing.T
	now    time.Time
	owns   map[string]*Own
	latest map[string]map[string]*catalog.Cluster // by replica and name
	union  *Union
	have   map[string]*catalog.Cluster // what the Machine has
	last   *catalog.Delivery
	rules  map[string]*catalog.Rules // by replica; ruleSet without them
	sent   int                       // contents
}

func newUnionOf(t *testing.T, replicas ...string) *fleet {
	f := &fleet{T: t, now: start, owns: map[string]*Own{}, latest: map[string]map[string]*catalog.Cluster{}, have: map[string]*catalog.Cluster{}, rules: map[string]*catalog.Rules{}}
	for _, id := range replicas {
		f.owns[id], f.latest[id] = NewOwn(), map[string]*catalog.Cluster{}
	}
	f.union = NewUnion(replicas[0], f.owns[replicas[0]])
	return f
}

// deliver gives a replica clusters. One without a source's cluster is removed.
func (f *fleet) deliver(id string, changes map[string]*source.Cluster, complete bool) {
	r := cmp.Or(f.rules[id], ruleSet)
	d := &catalog.Delivery{Rules: r, Answered: map[string]bool{"local": complete}, Complete: complete}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		before := f.latest[id][name]
		if changes[name] == nil {
			if before != nil {
				d.Removed = append(d.Removed, name)
				delete(f.latest[id], name)
			}
			continue
		}
		next := catalog.Prepare(changes[name], r)
		d.Changed = append(d.Changed, catalog.Change{Cluster: next, Renewed: catalog.ChangedProbes(before, next)})
		f.latest[id][name] = next
	}
	if f.owns[id].Deliver(d); f.union.id == id {
		f.union.OwnChanged(f.now, d)
	}
}

// exchange lets the leader hear everything.
func (f *fleet) exchange() {
	for quiet := false; !quiet; {
		quiet = true
		for _, id := range slices.Sorted(maps.Keys(f.owns)) {
			if id == f.union.id {
				continue
			}
			if u := f.owns[id].Take(); u != nil {
				for _, l := range u.Changed {
					if l.Cluster != nil {
						f.sent++
					}
				}
				f.union.Apply(f.now, id, u)
				quiet = false
			}
			if wanted := f.union.Wanted(id); len(wanted) > 0 {
				f.owns[id].Want(wanted)
				quiet = false
			}
		}
	}
	f.drain(true)
}

// drain gives the Machine what is due.
func (f *fleet) drain(known bool) {
	for f.step(known) || f.union.Due() {
	}
}

// step gives the Machine a part of what is due, and reports whether there was something.
func (f *fleet) step(known bool) bool {
	d := f.union.Next(known)
	if d != nil {
		f.last = d
		for _, name := range d.Removed {
			if f.have[name] == nil {
				f.Errorf("%s is removed, and was never there", name)
			}
			delete(f.have, name)
		}
		for _, change := range d.Changed {
			name := change.Cluster.Source.Name
			if want := catalog.ChangedProbes(f.have[name], change.Cluster); !slices.Equal(want, change.Renewed) {
				f.Errorf("%s has other probes at %v, want %v", name, change.Renewed, want)
			}
			f.have[name] = change.Cluster
		}
	}
	return d != nil
}

// reload gives a replica other rules.
func (f *fleet) reload(id string, r *catalog.Rules) {
	f.rules[id] = r
	d := &catalog.Delivery{Rules: r, Answered: map[string]bool{"local": true}, Complete: true}
	for _, name := range slices.Sorted(maps.Keys(f.latest[id])) {
		before := f.latest[id][name]
		next := catalog.Prepare(before.Source, r)
		d.Changed = append(d.Changed, catalog.Change{Cluster: next, Renewed: catalog.ChangedProbes(before, next)})
		f.latest[id][name] = next
	}
	if f.owns[id].Deliver(d); f.union.id == id {
		f.union.OwnChanged(f.now, d)
	}
}

// content tells the clusters that the Machine has: of each, the path of its check, and the endpoints.
func (f *fleet) content() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(f.have)) {
		lines = append(lines, describe(f.have[name]))
	}
	return strings.Join(lines, "; ")
}

func describe(k *catalog.Cluster) string {
	text := k.Source.Name
	for _, check := range k.Source.HealthChecks {
		text += " " + check.GetHttpHealthCheck().GetPath()
	}
	for i := range k.Endpoints {
		text += " " + strings.TrimSuffix(strings.TrimPrefix(k.Endpoints[i].Address(), "10.0.0."), ":80")
	}
	return text
}

// web returns a cluster with endpoints by their last numbers.
func web(name, path string, numbers ...int) *source.Cluster {
	var addresses []string
	for _, n := range numbers {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:80", n))
	}
	return sample.WithPath(name, path, addresses...)
}

func (f *fleet) wants(content string) {
	f.Helper()
	if got := f.content(); got != content {
		f.Errorf("the union is %q, want %q", got, content)
	}
}

func TestUnion(t *testing.T) {
	f := newUnionOf(t, "r2", "r1", "r3")
	f.deliver("r2", map[string]*source.Cluster{"web": web("web", "/", 1, 2), "own": web("own", "/", 5)}, true)
	for _, id := range []string{"r1", "r3"} {
		f.deliver(id, map[string]*source.Cluster{"web": web("web", "/", 1, 2)}, true)
	}
	f.exchange()
	f.wants("own / 5; web / 1 2")
	if f.have["web"] != f.latest["r2"]["web"] || f.sent != 0 {
		t.Errorf("equal clusters are prepared again, or %d are sent", f.sent)
	}
	f.deliver("r1", map[string]*source.Cluster{"web": web("web", "/new", 2, 3), "more": web("more", "/", 6)}, true)
	f.exchange()
	f.wants("more / 6; own / 5; web / 1 2 3")
	f.deliver("r3", map[string]*source.Cluster{"web": web("web", "/new", 2, 3)}, true) // most have it now
	f.exchange()
	f.wants("more / 6; own / 5; web /new 1 2 3")
	if f.sent != 2 {
		t.Errorf("%d contents are sent", f.sent)
	}
	f.deliver("r2", map[string]*source.Cluster{"web": web("web", "/new", 2, 3)}, true)
	f.deliver("r1", map[string]*source.Cluster{"more": nil}, true)
	f.exchange()
	f.wants("own / 5; web /new 2 3")
	if f.have["web"] != f.latest["r2"]["web"] {
		t.Error("equal clusters are not those of the leader")
	}
}

// TestWhatIsNotShared: clusters without health checks, and refused ones.
func TestWhatIsNotShared(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	plain, refused := web("plain", "/", 1), web("refused", "/", 2)
	plain.HealthChecks, refused.Rejected = nil, "it is odd"
	f.deliver("r1", nil, true)
	f.deliver("r2", map[string]*source.Cluster{"plain": plain, "refused": refused}, true)
	f.exchange()
	f.wants("")
	f.deliver("r1", map[string]*source.Cluster{"plain": plain, "refused": refused}, true)
	f.deliver("r2", map[string]*source.Cluster{"refused": web("refused", "/", 3)}, true)
	f.exchange()
	f.wants("plain 1; refused / 3")
	f.deliver("r2", map[string]*source.Cluster{"refused": nil}, true)
	f.exchange()
	f.wants("plain 1; refused / 2")
	if f.have["refused"].Source.Rejected == "" {
		t.Error("nobody learns why it is refused")
	}
}

func TestDifferences(t *testing.T) {
	f := newUnionOf(t, "r1", "r2", "r3")
	wants := func(want ...string) {
		t.Helper()
		f.exchange()
		var got []string
		for _, d := range f.union.Differences("relay") {
			got = append(got, fmt.Sprintf("%s %d %s %v", d.Replica, d.Count, d.Names, d.Since.Sub(start)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	same := map[string]*source.Cluster{"web": web("web", "/", 1), "pay": web("pay", "/", 2)}
	f.deliver("r1", same, true)
	f.deliver("r2", same, true)
	f.deliver("r3", map[string]*source.Cluster{"pay": web("pay", "/", 2), "x": web("x", "/", 2)}, true)
	wants("r3 2 [web x] 0s")
	f.now = start.Add(time.Minute)
	f.deliver("r1", map[string]*source.Cluster{"web": web("web", "/", 3)}, true)
	wants("r2 1 [web] 1m0s", "r3 2 [web x] 0s")
	f.deliver("r3", map[string]*source.Cluster{"web": web("web", "/", 3), "x": nil}, true)
	wants("r2 1 [web] 1m0s")
	f.union.Lose(f.now, "r2")
	wants()
	relayed, resolved, many := web("relayed", "/", 1), web("resolved", "/", 1), map[string]*source.Cluster{}
	relayed.Source, resolved.Names = "relay", "web.example"
	for _, name := range []string{"d", "a", "c", "b"} {
		many[name] = web(name, "/", 1)
	}
	f.deliver("r3", map[string]*source.Cluster{"relayed": relayed, "resolved": resolved}, true)
	wants()
	f.deliver("r1", many, true)
	wants("r3 4 [a b c] 1m0s")
}

// TestLostReplicas covers that the clusters of a lost replica stay for a while, and are its own when it returns.
func TestLostReplicas(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.deliver("r1", nil, true)
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1), "b": web("b", "/", 2)}, true)
	f.exchange()
	f.union.Lose(f.now, "r2")
	f.union.Forget(f.now.Add(Patience - 1))
	f.drain(true)
	f.wants("a / 1; b / 2")
	f.owns["r2"] = NewOwn()
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1)}, true)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	f.drain(true)
	f.wants("a / 1")
	f.union.Lose(f.now, "r2")
	f.union.Forget(f.now.Add(Patience))
	f.drain(true)
	f.wants("")
}

// TestAnswers covers when an absent endpoint may be given up.
func TestAnswers(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	wants := func(known, want bool) {
		t.Helper()
		f.drain(known)
		if f.last.Complete != want || f.last.Answered["local"] != want {
			t.Errorf("%+v, want %t", f.last, want)
		}
	}
	f.deliver("r1", nil, true)
	wants(false, false)
	if f.union.Knows("r2") {
		t.Error("it has told nothing")
	}
	f.union.Apply(f.now, "r2", f.owns["r2"].Take()) // its sources have told nothing yet
	if f.union.Knows("r2") {
		t.Error("its sources have told nothing")
	}
	f.deliver("r2", map[string]*source.Cluster{"a": web("a", "/", 1)}, false)
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	if f.union.Knows("r2") {
		t.Error("the content is not known")
	}
	f.exchange()
	wants(true, false)
	f.deliver("r2", nil, true)
	f.exchange()
	if wants(true, true); !f.union.Knows("r2") {
		t.Error("it has told everything")
	}
	wants(false, false)
}

// TestLargeListsTakeSeveralUpdates, and the clusters of another replica are prepared in several steps.
func TestLargeListsTakeSeveralUpdates(t *testing.T) {
	f := newUnionOf(t, "r1", "r2")
	f.union.budget, f.owns["r1"].listings, f.owns["r2"].listings = 100, 200, 200
	many := map[string]*source.Cluster{}
	for i := range 210 {
		many[fmt.Sprint("c", i)] = web(fmt.Sprint("c", i), "/", 1+i%200, 201)
	}
	f.deliver("r1", nil, true)
	f.deliver("r2", many, true)
	first := f.owns["r2"].Take()
	if len(first.Changed) != 200 || first.End || !first.Begin {
		t.Errorf("%d listings, %t, %t", len(first.Changed), first.Begin, first.End)
	}
	f.union.Apply(f.now, "r2", first)
	if second := f.owns["r2"].Take(); len(second.Changed) != 10 || !second.End || second.Begin {
		t.Errorf("%d listings, %t, %t", len(second.Changed), second.Begin, second.End)
	} else {
		f.union.Apply(f.now, "r2", second)
	}
	wanted := f.union.Wanted("r2")
	if f.owns["r2"].Want(wanted); len(wanted) != 200 {
		t.Errorf("the leader asks for %d contents at once", len(wanted))
	}
	f.union.Apply(f.now, "r2", f.owns["r2"].Take())
	if d := f.union.Next(true); len(d.Changed) != 50 || !f.union.Due() || d.Complete {
		t.Errorf("%d clusters at a time, %t", len(d.Changed), f.union.Due())
	} else {
		for _, change := range d.Changed {
			f.have[change.Cluster.Source.Name] = change.Cluster
		}
	}
	f.exchange()
	if len(f.have) != len(many) || f.sent == 0 {
		t.Errorf("%d clusters", len(f.have))
	}
}

// TestContentsAreLimited covers the bytes of an Update.
func TestContentsAreLimited(t *testing.T) {
	o := NewOwn()
	d := &catalog.Delivery{Rules: ruleSet, Complete: true}
	numbers := make([]int, 200)
	for i := range numbers {
		numbers[i] = i + 1
	}
	var names []string
	for i := range 1200 {
		names = append(names, fmt.Sprintf("c%04d", i))
		d.Changed = append(d.Changed, catalog.Change{Cluster: catalog.Prepare(web(names[i], "/", numbers...), ruleSet)})
	}
	o.Deliver(d)
	o.Take()
	o.Want(names)
	updates := 0
	for ; o.Due(); updates++ {
		size := 0
		for _, l := range o.Take().Changed {
			size += len(l.Cluster.Assignment.Wire())
		}
		if size > maxContent+1<<16 {
			t.Errorf("%d bytes", size)
		}
	}
	if updates < 2 {
		t.Errorf("%d updates", updates)
	}
}

// TestDigest covers that each part of a cluster counts, and its place does not.
func TestDigest(t *testing.T) {
	changes := map[string]func(*source.Cluster){
		"name": func(c *source.Cluster) { c.Name = "x" }, "service": func(c *source.Cluster) { c.ServiceName = "x" },
		"source": func(c *source.Cluster) { c.Source = "x" }, "assignment's source": func(c *source.Cluster) { c.AssignmentSource = "x" },
		"names": func(c *source.Cluster) { c.Names = "x" }, "lone": func(c *source.Cluster) { c.Lone = true },
		"stale": func(c *source.Cluster) { c.Stale = true }, "new ones": func(c *source.Cluster) { c.IgnoreNew = true },
		"no configuration": func(c *source.Cluster) { c.Config = nil },
		"configuration": func(c *source.Cluster) {
			c.Config = proto.CloneOf(c.Config)
			c.Config.LbPolicy = clusterv3.Cluster_MAGLEV
		},
		"endpoints": func(c *source.Cluster) { c.Assignment = web("web", "/", 2).Assignment }, "no endpoints": func(c *source.Cluster) { c.Assignment = nil },
		"checks": func(c *source.Cluster) { c.HealthChecks = web("web", "/x").HealthChecks }, "no checks": func(c *source.Cluster) { c.HealthChecks = nil },
	}
	digests := map[Digest]string{DigestOf(web("web", "/", 1)): "unchanged"}
	for name, change := range changes {
		c := web("web", "/", 1)
		change(c)
		digest := DigestOf(c)
		if other, found := digests[digest]; found {
			t.Errorf("%s: the digest is as with %s", name, other)
		}
		digests[digest] = name
	}
	moved := web("web", "/", 1)
	moved.File, moved.Line = "b.yaml", 7
	if DigestOf(moved) != DigestOf(web("web", "/", 1)) {
		t.Error("the file counts")
	}
}

// TestUnionOfRandomClusters covers random changes of all replicas, links that break and come back, and
// leaders that change. In the end, the union is that of all present clusters, whoever leads.
func TestUnionOfRandomClusters(t *testing.T) {
	others := catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 5}})
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := newUnionOf(t, "r2", "r1", "r3", "r4")
		ids := slices.Sorted(maps.Keys(f.owns))
		f.union.budget = 1 + r.IntN(8)
		for _, id := range ids {
			f.deliver(id, nil, true)
		}
		for range 60 {
			id := ids[r.IntN(len(ids))]
			switch r.IntN(14) {
			case 0:
				f.union.Lose(f.now, id)
				f.owns[id].Restart() // a new link
			case 1:
				f.exchange()
			case 2:
				leader := ids[r.IntN(len(ids))]
				f.union, f.have = NewUnion(leader, f.owns[leader]), map[string]*catalog.Cluster{}
				f.union.budget = 1 + r.IntN(8)
				for _, o := range f.owns {
					o.Restart()
				}
			case 3, 12:
				f.step(false)
			case 13:
				f.reload(id, []*catalog.Rules{ruleSet, others}[r.IntN(2)])
			case 4, 5, 6, 7:
				if id != f.union.id {
					f.union.Apply(f.now, id, orEmpty(f.owns[id].Take()))
					f.owns[id].Want(f.union.Wanted(id)) // the contents come later
				}
			default:
				name := string(rune('a' + r.IntN(4)))
				if r.IntN(4) == 0 {
					f.deliver(id, map[string]*source.Cluster{name: nil}, true)
					continue
				}
				numbers := [][]int{{1, 2}, {2, 3, 4}, {5}}[r.IntN(3)] // so replicas often have the same
				f.deliver(id, map[string]*source.Cluster{name: web(name, []string{"/", "/b"}[r.IntN(2)], numbers...)}, true)
			}
		}
		f.exchange()
		for name, k := range f.have {
			if !k.UpToDate(cmp.Or(f.rules[f.union.id], ruleSet)) {
				t.Fatalf("seed %d: %s is prepared by other rules", seed, name)
			}
		}
		content := f.content()
		for _, leader := range ids {
			f.union, f.have = NewUnion(leader, f.owns[leader]), map[string]*catalog.Cluster{}
			for _, o := range f.owns {
				o.Restart()
			}
			f.exchange()
			if f.wants(content); f.Failed() {
				t.Fatalf("seed %d, led by %s", seed, leader)
			}
		}
		endpoints := map[string]bool{}
		for _, clusters := range f.latest {
			for name, k := range clusters {
				for i := range k.Endpoints {
					key := k.Endpoints[i].Key()
					if endpoints[name+key.Address] = true; f.have[name].Find(&key) == nil {
						t.Fatalf("seed %d: the union lacks %s of %s", seed, key.Address, name)
					}
				}
			}
		}
		for name, k := range f.have {
			for i := range k.Endpoints {
				if !endpoints[name+k.Endpoints[i].Address()] {
					t.Fatalf("seed %d: nobody has %s of %s", seed, k.Endpoints[i].Address(), name)
				}
			}
		}
	}
}

// orEmpty returns an Update, an empty one for nil.
func orEmpty(u *Update) *Update {
	if u == nil {
		return &Update{}
	}
	return u
}
