package aggregate

import "slices"

// repeated builds lists for one endpoint after the other. Neighbours mostly have the same
// checkers with the same votes: then it returns its previous list again.
type repeated[T comparable] struct {
	room  []T // memory for the next list
	given []T // the latest list; immutable
}

// share returns a list made in room; nil for an empty one.
func (r *repeated[T]) share(list []T) []T {
	r.room = list
	switch {
	case len(list) == 0:
		return nil
	case !slices.Equal(list, r.given):
		r.given = slices.Clone(list)
	}
	return r.given
}

// repeatedText is repeated for a text.
type repeatedText struct {
	room  []byte
	given string
}

// share returns a text made in room.
func (r *repeatedText) share(text []byte) string {
	if r.room = text; string(text) != r.given {
		r.given = string(text)
	}
	return r.given
}
