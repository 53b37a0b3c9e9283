package coordinator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
)

// anyCluster is one of a source, in one of the ways in which its endpoints come
// with it, apart from it, or without it.
func anyCluster(r *rand.Rand, from, name string) *source.Cluster {
	k := web(name, one)
	k.Source = from
	kind := r.IntN(4)
	if kind > 0 {
		k.Config = eds.PublishCluster(k.Config, eds.ByADS())
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
			if lacking(c) && c.Source != name {
				services = append(services, c.ServiceName)
			}
		}
		slices.Sort(services)
		wanted[name] = fmt.Sprint(slices.Compact(services))
	}
	return wanted
}

// TestIntakeOfChanges: what is posted adds up to what the sources say, each
// change of it once, and what is asked for to what is lacking.
func TestIntakeOfChanges(t *testing.T) {
	for seed := range uint64(50) {
		random, names := rand.New(rand.NewPCG(seed, 3)), []string{"x", "y"}
		there, wanted, sets := map[string]*source.Cluster{}, map[string]string{}, map[string]*source.Set{}
		in := newIntake(func(d delivery) {
			for _, name := range d.removed {
				if there[name] == nil {
					t.Errorf("seed %d: %s is removed, and was not there", seed, name)
				}
				delete(there, name)
			}
			for _, c := range d.changed {
				if there[c.cluster.seen.Name] == c.cluster.seen {
					t.Errorf("seed %d: %s is said to have changed", seed, c.cluster.seen.Name)
				}
				there[c.cluster.seen.Name] = c.cluster.seen
			}
		})
		in.want = func(source string, names []string) { wanted[source] = fmt.Sprint(names) }
		restart := func() {
			in.restart([]*source.Set{sets["x"], sets["y"]}, newRules(&configv1.Config{}))
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
			if in.take(sets[from]); random.IntN(10) == 0 {
				restart()
			}
			if got := slices.SortedFunc(maps.Values(there), byName); !slices.Equal(got, in.catalog.Clusters) {
				t.Fatalf("seed %d: got %d clusters, want %d", seed, len(got), len(in.catalog.Clusters))
			}
			if want := wantedOf(names, in.catalog.Clusters); !maps.Equal(wanted, want) {
				t.Fatalf("seed %d: asked for %v, want %v", seed, wanted, want)
			}
			if len(in.prepared) != len(there) {
				t.Fatalf("seed %d: %d clusters are kept, of %d", seed, len(in.prepared), len(there))
			}
		}
	}
}
