package canary

import "slices"

// These bound what is kept of proofs.
const (
	maxBuilds = 256  // of a shape: the latest
	maxUnused = 4096 // shapes that are proven and that no cluster has
)

// shape is what is known of one shape.
type shape struct {
	id       Shape
	proven   []Build    // builds that have survived it
	versions []*version // those that have it
	alone    *version   // the one that has no other; nil if there is none
	trial    *trial     // in which it is to be proven; nil if there is none
	charges  []*charge  // in which it is blamed
	unused   uint64     // number of the turn in which it became unused
}

func (s *shape) provenFor(b Build) bool { return slices.Contains(s.proven, b) }

// shapes is all shapes, the versions that have them, and what they are charged with.
type shapes struct {
	known    map[Shape]*shape
	versions map[string]*version // by versionKey
	charges  []*charge           // in the order in which they were made
	unused   []unused            // proven shapes that no cluster has, the oldest first
	turn     uint64
	proofs   uint64 // number of all

	restoring bool               // clusters may be absent that the sources still have
	former    map[string]Record  // restored records of clusters themselves, which are not known yet
	unsaved   map[string]*charge // to be stored, by the name of its record; nil: that is gone
	changed   map[Shape]struct{} // whose proofs are to be stored
}

func newShapes() shapes {
	return shapes{
		known: map[Shape]*shape{}, versions: map[string]*version{},
		former: map[string]Record{}, unsaved: map[string]*charge{}, changed: map[Shape]struct{}{},
	}
}

// unused is a shape as it became unused.
type unused struct {
	shape *shape
	turn  uint64
}

// get returns a shape, which may be new.
func (a *shapes) get(id Shape) *shape {
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
func (a *shapes) version(sorted []Shape) *version {
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

// tidy forgets a shape that no version has, unless it is proven. Of those, it forgets the
// oldest if there are too many.
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
		if old := a.unused[0]; old.shape.unused == old.turn && len(old.shape.versions)+len(old.shape.charges) == 0 {
			delete(a.known, old.shape.id)
			a.changed[old.shape.id] = struct{}{}
		}
	}
}
