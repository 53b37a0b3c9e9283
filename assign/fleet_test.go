package assign_test

import (
	"fmt"
	"math/rand/v2"

	"hdsd/assign"
	"hdsd/health"
)

// abilities are shared: Abilities are not changed once made.
var plain = health.Abilities{health.HTTP: {}, health.TCP: {}}

func zoneName(n int) health.Locality {
	return health.Locality{Region: "r", Zone: fmt.Sprintf("z%d", n)}
}

// checker makes the n-th checker of a fleet that takes turns in its zones.
func checker(n, zones int) health.Checker {
	return health.Checker{ID: fmt.Sprintf("checker-%d", n), Locality: zoneName(n % zones), Abilities: plain}
}

func checkers(n, zones int) []health.Checker {
	all := make([]health.Checker, n)
	for i := range all {
		all[i] = checker(i, zones)
	}
	return all
}

func names(all []health.Checker) []string {
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	return ids
}

// endpoints makes n endpoints in clusters of many sizes (median about 40, some
// in the thousands), spread over zones.
func endpoints(n, zones int, class assign.ClassID, redundancy int) []assign.Endpoint {
	random := rand.New(rand.NewPCG(1, 2))
	all := make([]assign.Endpoint, 0, n)
	for cluster := 0; len(all) < n; cluster++ {
		name := fmt.Sprintf("cluster-%d", cluster)
		hash := health.ClusterHash(name)
		size := min(1+int(40*random.ExpFloat64()*random.ExpFloat64()*1.7), n-len(all))
		if cluster%1000 == 17 {
			size = min(n/200+1, n-len(all))
		}
		for i := range size {
			e := health.Endpoint{Cluster: name, Locality: zoneName(len(all) % zones), Address: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256)}
			all = append(all, assign.Endpoint{
				ID: health.EndpointID(len(all)), Hash: e.Hash(), ClusterHash: hash,
				Locality: e.Locality, Class: class, Redundancy: redundancy,
			})
		}
	}
	return all
}

// mirror is a plan that is kept by Diffs alone.
type mirror map[string]map[health.EndpointID]bool

func (m mirror) apply(d assign.Diff) error {
	for _, move := range d.Moves {
		at := m[move.Checker]
		if at == nil {
			at = map[health.EndpointID]bool{}
			m[move.Checker] = at
		}
		for _, id := range move.Remove {
			if !at[id] {
				return fmt.Errorf("%s gives up %d, which it does not have", move.Checker, id)
			}
			delete(at, id)
		}
		for _, id := range move.Add {
			if at[id] {
				return fmt.Errorf("%s gets %d, which it has", move.Checker, id)
			}
			at[id] = true
		}
	}
	return nil
}

// moved counts a Diff's additions and removals.
func moved(d assign.Diff) (added, removed int) {
	for _, m := range d.Moves {
		added += len(m.Add)
		removed += len(m.Remove)
	}
	return added, removed
}
