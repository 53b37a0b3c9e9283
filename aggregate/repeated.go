package aggregate

import "slices"

// repeated lists what is asked for endpoint after endpoint. Those beside each other mostly
// have the same checkers, which say the same: then it gives the list that it gave before.
type repeated[T comparable] struct {
	room  []T // for the list that is made
	given []T // the latest one; nobody changes it
}

// share returns a list that was made in room; nil for an empty one.
func (r *repeated[T]) share(made []T) []T {
	r.room = made
	switch {
	case len(made) == 0:
		return nil
	case !slices.Equal(made, r.given):
		r.given = slices.Clone(made)
	}
	return r.given
}

// repeatedText is the same for a text.
type repeatedText struct {
	room  []byte
	given string
}

// share returns a text that was made in room.
func (r *repeatedText) share(made []byte) string {
	if r.room = made; string(made) != r.given {
		r.given = string(made)
	}
	return r.given
}
