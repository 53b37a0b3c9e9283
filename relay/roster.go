package relay

// roster lists the resources of a name, the oldest first. The cost of a removal does not grow with their
// number. stock.mu guards it. A nil roster is empty.
type roster struct {
	all     []*body // nil in the place of a removed one
	removed int
}

// size returns the number of resources.
func (r *roster) size() int {
	if r == nil {
		return 0
	}
	return len(r.all) - r.removed
}

// list returns the resources. The list is valid until the roster changes.
func (r *roster) list() []*body {
	if r == nil {
		return nil
	}
	r.compact()
	return r.all
}

func (r *roster) add(x *body) {
	x.place = len(r.all)
	r.all = append(r.all, x)
}

func (r *roster) remove(x *body) {
	r.all[x.place] = nil
	if r.removed++; 2*r.removed > len(r.all) {
		r.compact()
	}
}

// compact closes the gaps.
func (r *roster) compact() {
	if r.removed == 0 {
		return
	}
	left := make([]*body, 0, r.size())
	for _, x := range r.all {
		if x != nil {
			x.place = len(left)
			left = append(left, x)
		}
	}
	r.all, r.removed = left, 0
}
