package feed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/publish"
	"hdsd/source"
	"hdsd/source/sample"
)

// anyCluster is one of a source, in one of the ways in which its endpoints come
// with it, apart from it, or without it.
func anyCluster(r *rand.Rand, from, name string) *source.Cluster {
	k := sample.Web(name, "10.0.0.1:80")
	k.Source = from
	kind := r.IntN(4)
	if kind > 0 {
		k.Config = publish.TakeOver(k.Config, publish.ByADS())
		k.ServiceName = []string{name, "a", "svc"}[r.IntN(3)]
	}
	switch kind {
	case 1:
		k.Assignment = nil
	case 2:
		k.Config, k.HealthChecks, k.ServiceName = nil, nil, name
	}
	return k
}

// wantedOf is what each source is to be asked for, by all clusters there are.
func wantedOf(names []string, clusters []*source.Cluster) map[string]string {
	wanted := map[string]string{}
	for _, name := range names {
		var services []string
		for _, c := range clusters {
			if lacksAssignment(c) && c.Source != name {
				services = append(services, c.ServiceName)
			}
		}
		slices.Sort(services)
		wanted[name] = fmt.Sprint(slices.Compact(services))
	}
	return wanted
}

// asker notes what each source is asked for.
type asker map[string]string

// Want implements Asker.
func (a asker) Want(source string, names []string) { a[source] = fmt.Sprint(names) }

// Pending implements Asker.
func (asker) Pending(string) bool { return false }

// fixed is a source that has one set and no changes.
type fixed struct{ *source.Set }

// Latest implements Reader.
func (f fixed) Latest() *source.Set { return f.Set }

// Run implements Reader.
func (f fixed) Run(context.Context, func(*source.Set)) error { return nil }

// TestIntakeOfChanges: what is posted adds up to what the sources say, each
// change of it once, and what is asked for to what is lacking.
func TestIntakeOfChanges(t *testing.T) {
	for seed := range uint64(50) {
		random, names := rand.New(rand.NewPCG(seed, 3)), []string{"x", "y"}
		there, wanted, sets := map[string]*source.Cluster{}, map[string]string{}, map[string]*source.Set{}
		in := NewIntake(func(d catalog.Delivery) {
			for _, name := range d.Removed {
				if there[name] == nil {
					t.Errorf("seed %d: %s is removed, and was not there", seed, name)
				}
				delete(there, name)
			}
			for _, c := range d.Changed {
				if there[c.Cluster.Latest.Name] == c.Cluster.Latest {
					t.Errorf("seed %d: %s is said to have changed", seed, c.Cluster.Latest.Name)
				}
				there[c.Cluster.Latest.Name] = c.Cluster.Latest
			}
		}, asker(wanted), zerolog.Nop())
		restart := func() {
			in.Restart([]Reader{&fixed{sets["x"]}, &fixed{sets["y"]}}, catalog.NewRules(&configv1.Config{}), nil)
		}
		sets["x"], sets["y"] = &source.Set{Source: "x"}, &source.Set{Source: "y"}
		restart()
		for range 40 {
			from, name := names[random.IntN(2)], []string{"a", "b", "svc"}[random.IntN(3)]
			with := map[string]*source.Cluster{name: nil}
			if random.IntN(3) > 0 {
				with[name] = anyCluster(random, from, name)
			}
			sets[from] = &source.Set{Source: from, Clusters: source.Amend(sets[from].Clusters, with)}
			if in.Take(in.readers[from], sets[from]); random.IntN(10) == 0 {
				restart()
			}
			if got := slices.SortedFunc(maps.Values(there), func(a, b *source.Cluster) int { return cmp.Compare(a.Name, b.Name) }); !slices.Equal(got, in.merged.Clusters) {
				t.Fatalf("seed %d: got %d clusters, want %d", seed, len(got), len(in.merged.Clusters))
			}
			if want := wantedOf(names, in.merged.Clusters); !maps.Equal(wanted, want) {
				t.Fatalf("seed %d: asked for %v, want %v", seed, wanted, want)
			}
			if len(in.prepared) != len(there) {
				t.Fatalf("seed %d: %d clusters are kept, of %d", seed, len(in.prepared), len(there))
			}
		}
	}
}

// journal is a source whose word a test gives it.
type journal struct {
	fixed
	to *Intake
}

// says is what Run does: the set is the latest, and then it is handed on.
func (j *journal) says(set *source.Set) func() {
	set.Source = "x"
	j.Set = set
	return func() { j.to.Take(j, set) }
}

// TestNothingOlderIsTheLastWord: whatever a source hands on, and whenever the
// sources are exchanged meanwhile, what it read last holds.
func TestNothingOlderIsTheLastWord(t *testing.T) {
	named := func(name string) *source.Set {
		return &source.Set{Clusters: []*source.Cluster{{Source: "x", Name: name, ServiceName: name}}}
	}
	awaited := func(set *source.Set) *source.Set { set.Awaited = true; return set }
	tests := map[string]struct {
		steps func(restart func(*journal), a, b *journal)
		want  string
	}{
		"handed on, then exchanged": {func(restart func(*journal), a, _ *journal) {
			a.says(named("new"))()
			restart(a)
		}, "new"},
		"exchanged, then handed on": {func(restart func(*journal), a, _ *journal) {
			hand := a.says(named("new"))
			restart(a)
			hand()
		}, "new"},
		"exchanged twice": {func(restart func(*journal), a, b *journal) {
			a.says(named("new"))()
			b.says(named("newer"))
			restart(b)
			restart(b)
		}, "newer"},
		"the one before goes on": {func(restart func(*journal), a, b *journal) {
			late := a.says(named("late"))
			b.says(named("new"))
			restart(b)
			late()
		}, "new"},
		"the same, not heard since the start": {func(restart func(*journal), a, _ *journal) {
			a.says(awaited(named("kept")))()
			restart(a)
		}, "kept"},
		"another that says nothing yet": {func(restart func(*journal), a, b *journal) {
			a.says(awaited(named("kept")))()
			b.says(awaited(&source.Set{}))
			restart(b)
			restart(b)
		}, "kept"},
		"another that has what was said before": {func(restart func(*journal), a, b *journal) {
			a.says(awaited(named("older")))()
			b.says(awaited(named("kept")))
			restart(b)
		}, "kept"},
		"another, after one that was heard": {func(restart func(*journal), a, b *journal) {
			a.says(named("heard"))()
			b.says(awaited(named("kept")))
			restart(b)
		}, "heard"},
		"its time to live is over": {func(restart func(*journal), a, _ *journal) {
			a.says(awaited(named("kept")))()
			a.says(awaited(&source.Set{}))()
			restart(a)
		}, ""},
		"another that has nothing": {func(restart func(*journal), a, b *journal) {
			a.says(named("old"))()
			restart(b)
			b.says(&source.Set{})()
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := NewIntake(func(catalog.Delivery) {}, nil, zerolog.Nop())
			restart := func(j *journal) { in.Restart([]Reader{j}, catalog.NewRules(&configv1.Config{}), nil) }
			a, b := &journal{to: in}, &journal{to: in}
			a.says(named("first"))
			b.says(awaited(&source.Set{}))
			restart(a)
			test.steps(restart, a, b)
			got := ""
			for _, c := range in.merged.Clusters {
				got += c.Name
			}
			if got != test.want {
				t.Errorf("in the end there is %q, want %q", got, test.want)
			}
		})
	}
}
