package specifier

import "google.golang.org/protobuf/proto"

// Comparer returns a function that reports whether specifiers have the same for an endpoint of
// before and one of after, by their indexes in Endpoints.
func Comparer(before, after *Cluster) func(i, j int) bool {
	sameForms := map[[2]int32]bool{}
	return func(i, j int) bool {
		a, b := &before.Endpoints[i], &after.Endpoints[j]
		forms := [2]int32{a.form, b.form}
		same, known := sameForms[forms]
		if !known {
			same = proto.Equal(before.forms[a.form].start(), after.forms[b.form].start())
			sameForms[forms] = same
		}
		return same && a.Address == b.Address && (a.special == b.special || proto.Equal(a.special, b.special))
	}
}
