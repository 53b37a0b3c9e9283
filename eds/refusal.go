package eds

import (
	"regexp"
	"slices"
	"strconv"
)

// refusal is a client's refusal of a response, or of a part of it.
type refusal struct {
	text    string  // cut to maxText
	indexes []int32 // of the refused resources, in order; none: all of them
}

// maxIndexed bounds a text in which indexes are read. With a longer one, a client counts as
// refusing all.
const maxIndexed = 256 << 10

// newRefusal reads the text of a NACK. gRPC's clients for C++ and Node.js accept the valid
// resources of a response, and name refused ones by "resource index 3:".
func newRefusal(text string) *refusal {
	r := &refusal{text: brief(text)}
	if len(text) > maxIndexed {
		return r
	}
	for _, found := range refusedIndex.FindAllStringSubmatch(text, -1) {
		if index, err := strconv.ParseInt(found[1], 10, 32); err == nil {
			r.indexes = append(r.indexes, int32(index))
		}
	}
	slices.Sort(r.indexes)
	r.indexes = slices.Compact(r.indexes)
	return r
}

var refusedIndex = regexp.MustCompile(`(?:\[|; )resource index (\d+):`)

// includes reports whether the resource of an index is refused; an ACK (nil) refuses none.
func (r *refusal) includes(index int32) bool {
	if r == nil || len(r.indexes) == 0 {
		return r != nil
	}
	_, found := slices.BinarySearch(r.indexes, index)
	return found
}
