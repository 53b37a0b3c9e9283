package rollout

import (
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/rollout/canary"
)

// history holds the versions of a cluster that checkers may still get.
type history struct {
	present *catalog.Cluster
	stable  map[canary.Build]*catalog.Cluster // by build: the last proven version, if the present one is not proven
	proven  map[canary.Build]*selection       // by build: the proven part of the present version
	proofs  uint64                            // count of proofs, as in canary.Ledger, when proven was made
	changed map[[2]*catalog.Cluster][]bool    // results of catalog.ChangedProbes
	places  map[*catalog.Cluster]map[health.Hash]int
}

// selection is a checker's part of a cluster: none if cluster is nil.
type selection struct {
	cluster  *catalog.Cluster
	withheld map[specifier.Shape]bool // endpoints of these shapes are not sent
}

var nothing = &selection{}

// equal reports whether two selections are equal, so that their endpoints need no comparison.
func (s *selection) equal(other *selection) bool {
	return s == other || s.cluster == other.cluster && len(s.withheld)+len(other.withheld) == 0
}

// SetCluster sets a new version of a cluster. Builds for which the previous version is proven
// and the new one is not keep the previous one. Changed is the result of catalog.ChangedProbes
// for the two.
func (r *Rollout) SetCluster(now time.Time, next *catalog.Cluster, changed []bool) {
	name := next.Source.Name
	h := r.histories[name]
	if h == nil {
		h = &history{stable: map[canary.Build]*catalog.Cluster{}}
		r.histories[name] = h
	}
	previous := h.present
	proven := map[canary.Build]bool{}
	for _, c := range r.recipients {
		proven[c.build] = proven[c.build] || previous != nil && r.ledger.Proven(c.build, name)
	}
	r.ledger.Set(now, name, versionOf(next))
	for build, wasProven := range proven {
		switch {
		case r.ledger.Proven(build, name):
			delete(h.stable, build)
		case wasProven:
			h.stable[build] = previous
		}
	}
	h.present, h.proven, h.places = next, map[canary.Build]*selection{}, map[*catalog.Cluster]map[health.Hash]int{}
	h.changed = map[[2]*catalog.Cluster][]bool{{previous, next}: changed}
}

// RemoveCluster forgets a cluster.
func (r *Rollout) RemoveCluster(now time.Time, name string) {
	delete(r.histories, name)
	r.ledger.Remove(now, name)
}

// versionOf returns a cluster in the form that package canary uses.
func versionOf(k *catalog.Cluster) canary.Version {
	v := canary.Version{Shapes: slices.Clone(k.Shapes)}
	slices.Sort(v.Shapes)
	v.Shapes = slices.Compact(v.Shapes)
	if k.Checked != nil {
		v.Probe = k.Checked.Timing.InitialJitter + k.Checked.Timing.Timeout
	}
	return v
}

// refresh forgets the proven parts by build, if there are more proofs since.
func (h *history) refresh(proofs uint64) {
	if h.proofs != proofs {
		h.proofs = proofs
		clear(h.proven)
	}
}

// usable returns the part of a cluster that a checker may have without a trial: the proven part
// of the present version, or the previous version, whichever has more.
func (r *Rollout) usable(h *history, c *recipient) *selection {
	proven := r.provenPart(h, c.build)
	stable := h.stable[c.build]
	if stable == nil || stable.Checked == nil || !c.Abilities.Has(stable.Checked.Needs...) {
		return proven
	}
	for _, hash := range stable.Hashes {
		if _, stays := h.place(h.present, hash); stays {
			if _, sent := h.sent(proven, hash); !sent {
				return &selection{cluster: stable}
			}
		}
	}
	return proven
}

// provenPart returns the part of the present version that is proven for a build.
func (r *Rollout) provenPart(h *history, build canary.Build) *selection {
	h.refresh(r.ledger.Proofs())
	if part := h.proven[build]; part != nil {
		return part
	}
	k := h.present
	part, found := &selection{cluster: k, withheld: map[specifier.Shape]bool{}}, false
	for _, shape := range k.Shapes {
		if r.ledger.ProvenShape(build, shape) {
			found = true
		} else {
			part.withheld[shape] = true
		}
	}
	if !found {
		part = nothing
	}
	h.proven[build] = part
	return part
}

// sent returns the index of an endpoint in a selection, if it is there.
func (h *history) sent(s *selection, hash health.Hash) (index int, ok bool) {
	if s.cluster == nil {
		return 0, false
	}
	if index, ok = h.place(s.cluster, hash); !ok {
		return 0, false
	}
	return index, !s.withheld[s.cluster.Shapes[index]]
}

// place returns the index of an endpoint in a version, if it is there.
func (h *history) place(k *catalog.Cluster, hash health.Hash) (index int, ok bool) {
	places := h.places[k]
	if places == nil {
		places = make(map[health.Hash]int, len(k.Hashes))
		for i, hash := range k.Hashes {
			places[hash] = i
		}
		h.places[k] = places
	}
	index, ok = places[hash]
	return index, ok
}

// differs reports whether a checker treats an endpoint as a new one. index is the endpoint's
// index in next.
func (h *history) differs(previous, next *catalog.Cluster, index int) bool {
	if previous == next {
		return false
	}
	pair := [2]*catalog.Cluster{previous, next}
	changed, ok := h.changed[pair]
	if !ok {
		changed = catalog.ChangedProbes(previous, next)
		h.changed[pair] = changed
	}
	return changed != nil && changed[index]
}
