package relay

// roster lists the resources of a name, the oldest first. The cost of a removal does not grow with their
// number. stock.mu guards it. A nil roster is empty.
type roster struct {
	bodies  []*body // nil in the place of a removed one
	removed int
}

// size returns the number of resources.
func (r *roster) size() int {
	if r == nil {
		return 0
	}
	return len(r.bodies) - r.removed
}

// list returns the resources. The list is valid until the roster changes.
func (r *roster) list() []*body {
	if r == nil {
		return nil
	}
	r.compact()
	return r.bodies
}

func (r *roster) add(x *body) {
	x.index = len(r.bodies)
	r.bodies = append(r.bodies, x)
}

func (r *roster) remove(x *body) {
	r.bodies[x.index] = nil
	if r.removed++; 2*r.removed > len(r.bodies) {
		r.compact()
	}
}

// compact closes the gaps.
func (r *roster) compact() {
	if r.removed == 0 {
		return
	}
	left := make([]*body, 0, r.size())
	for _, x := range r.bodies {
		if x != nil {
			x.index = len(left)
			left = append(left, x)
		}
	}
	r.bodies, r.removed = left, 0
}
