package canary

import "hdsd/envoy/specifier"

import "slices"

// These bound the stored proofs.
const (
	maxBuilds = 256  // of a shape: the latest
	maxUnused = 4096 // proven shapes that no cluster has
)

// shape is the record of one shape.
type shape struct {
	id       specifier.Shape
	proven   []Build    // builds that have survived it
	versions []*version // versions that have it
	alone    *version   // the version that has no other; nil if there is none
	trial    *trial     // the trial to prove it; nil if there is none
	charges  []*charge  // charges that blame it
	unused   uint64     // number of the turn in which it became unused
}

func (s *shape) provenFor(b Build) bool { return slices.Contains(s.proven, b) }

// shapes is all shapes, with their versions and charges.
type shapes struct {
	known    map[specifier.Shape]*shape
	versions map[string]*version // by versionKey
	charges  []*charge           // in order of creation
	unused   []unused            // proven shapes that no cluster has, oldest first
	turn     uint64
	proofs   uint64 // number of all

	restoring bool                         // the sources may still bring absent clusters
	unsaved   map[string]*charge           // to be stored, by the name of its record; nil: removed
	changed   map[specifier.Shape]struct{} // shapes whose proofs are to be stored
}

func newShapes() shapes {
	return shapes{
		known: map[specifier.Shape]*shape{}, versions: map[string]*version{},
		unsaved: map[string]*charge{}, changed: map[specifier.Shape]struct{}{},
	}
}

// unused is a shape with the turn in which it became unused.
type unused struct {
	shape *shape
	turn  uint64
}

// get returns a shape, which may be new.
func (a *shapes) get(id specifier.Shape) *shape {
	s := a.known[id]
	if s == nil {
		s = &shape{id: id}
		a.known[id] = s
	}
	return s
}

// prove records that a build has survived a shape.
func (a *shapes) prove(s *shape, b Build) {
	if s.provenFor(b) {
		return
	}
	a.proofs++
	if s.proven = append(s.proven, b); len(s.proven) > maxBuilds {
		s.proven = s.proven[1:]
	}
	for _, v := range s.versions {
		clear(v.builds)
	}
}

// version returns the version with these shapes, which are sorted. It may be new.
func (a *shapes) version(sorted []specifier.Shape) *version {
	key := versionKey(sorted)
	v := a.versions[key]
	if v != nil {
		return v
	}
	v = &version{builds: map[Build]bool{}}
	for _, id := range sorted {
		s := a.get(id)
		s.versions = append(s.versions, v)
		v.shapes = append(v.shapes, s)
	}
	if len(v.shapes) == 1 {
		v.shapes[0].alone = v
	}
	a.versions[key] = v
	return v
}

// leave notes that a cluster no longer has a version.
func (a *shapes) leave(v *version) {
	if v.clusters--; v.clusters > 0 {
		return
	}
	delete(a.versions, versionKey(ids(v.shapes)))
	for _, s := range v.shapes {
		s.versions = slices.DeleteFunc(s.versions, func(other *version) bool { return other == v })
		if s.alone == v {
			s.alone = nil
		}
		a.tidy(s)
	}
	if !a.restoring {
		a.dropUnused()
	}
}

// tidy forgets a shape that no version has, unless it is proven. It also forgets the oldest
// unused proven shape if there are too many.
func (a *shapes) tidy(s *shape) {
	if len(s.versions) > 0 || len(s.charges) > 0 {
		return
	}
	if len(s.proven) == 0 {
		delete(a.known, s.id)
		return
	}
	a.turn++
	s.unused = a.turn
	a.unused = append(a.unused, unused{s, a.turn})
	for ; len(a.unused) > maxUnused; a.unused = a.unused[1:] {
		if first := a.unused[0]; first.shape.unused == first.turn && len(first.shape.versions)+len(first.shape.charges) == 0 {
			delete(a.known, first.shape.id)
			a.changed[first.shape.id] = struct{}{}
		}
	}
}
