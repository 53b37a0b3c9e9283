package rollout

import (
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/rollout/canary"
	"hdsd/health"
)

// history holds the versions of a cluster that checkers may still get.
type history struct {
	present *catalog.Cluster
	stable  map[canary.Build]*catalog.Cluster // by build: the last proven version, if the present one is not proven
	proven  map[canary.Build]*selection       // by build: what is proven of the present version
	proofs  uint64                            // as canary.Ledger counts them, of which proven is made
	changed map[[2]*catalog.Cluster][]bool    // what catalog.ChangedProbes returns
	places  map[*catalog.Cluster]map[health.Hash]int
}

// selection is what a checker gets of a cluster: nothing if cluster is nil.
type selection struct {
	cluster  *catalog.Cluster
	withheld map[canary.Shape]bool // endpoints of these shapes are not sent
}

var nothing = &selection{}

// same reports whether two selections are equal, so that their endpoints need no
// comparison.
func (s *selection) same(other *selection) bool {
	return s == other || s.cluster == other.cluster && len(s.withheld)+len(other.withheld) == 0
}

// SetCluster sets a new version of a cluster. The previous version stays in use for
// builds that it is proven for and the new one is not. Changed is the result of
// catalog.ChangedProbes for the two.
func (r *Rollout) SetCluster(now time.Time, after *catalog.Cluster, changed []bool) {
	name := after.Source.Name
	h := r.histories[name]
	if h == nil {
		h = &history{stable: map[canary.Build]*catalog.Cluster{}}
		r.histories[name] = h
	}
	before := h.present
	proven := map[canary.Build]bool{}
	for _, to := range r.recipients {
		proven[to.build] = proven[to.build] || before != nil && r.ledger.Proven(to.build, name)
	}
	version := versionOf(after)
	if r.ledger.HasRecord(name) {
		version.Former = formerShapes(after)
	}
	r.ledger.Set(now, name, version)
	for build, was := range proven {
		switch {
		case r.ledger.Proven(build, name):
			delete(h.stable, build)
		case was:
			h.stable[build] = before
		}
	}
	h.present, h.proven, h.places = after, map[canary.Build]*selection{}, map[*catalog.Cluster]map[health.Hash]int{}
	h.changed = map[[2]*catalog.Cluster][]bool{{before, after}: changed}
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

// formerShapes returns what a cluster's shapes are called in records of before.
func formerShapes(k *catalog.Cluster) map[canary.Shape]canary.Shape {
	if k.Checked == nil {
		return nil
	}
	former := map[canary.Shape]canary.Shape{}
	for i, shape := range k.Checked.FormerShapes() {
		former[k.Shapes[i]] = canary.Shape(shape)
	}
	return former
}

// refresh forgets what was proven by build, if more is proven since.
func (h *history) refresh(proofs uint64) {
	if h.proofs != proofs {
		h.proofs = proofs
		clear(h.proven)
	}
}

// usable returns what a checker may have of a cluster without trying it: the proven
// part of the present version, or the previous version. It returns the one that has
// more.
func (r *Rollout) usable(h *history, to *recipient) *selection {
	proven := r.provenPart(h, to.build)
	before := h.stable[to.build]
	if before == nil || before.Checked == nil || !to.Abilities.Has(before.Checked.Needs...) {
		return proven
	}
	for _, hash := range before.Hashes {
		if _, stays := h.place(h.present, hash); stays {
			if _, sent := h.sent(proven, hash); !sent {
				return &selection{cluster: before}
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
	part, some := &selection{cluster: k, withheld: map[canary.Shape]bool{}}, false
	for _, shape := range k.Shapes {
		if r.ledger.ProvenShape(build, shape) {
			some = true
		} else {
			part.withheld[shape] = true
		}
	}
	if !some {
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

// differs reports whether a checker takes an endpoint for a different one than
// before. index is the endpoint's index in after.
func (h *history) differs(before, after *catalog.Cluster, index int) bool {
	if before == after {
		return false
	}
	pair := [2]*catalog.Cluster{before, after}
	changed, ok := h.changed[pair]
	if !ok {
		changed = catalog.ChangedProbes(before, after)
		h.changed[pair] = changed
	}
	return changed != nil && changed[index]
}
