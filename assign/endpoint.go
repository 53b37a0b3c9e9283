package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// endpoint is what is kept of an endpoint.
type endpoint struct {
	trie.Key       // hashes of its cluster and of itself
	kind     int32 // none if it is not known
	unit     int32 // none until it is in one
}

// flag says what is to be told of an endpoint.
type flag uint8

const (
	isNew         flag = 1 << iota // had no seats before this step
	isMoved                        // changed its kind in this step
	isUncheckable                  // was told to be
)

// endpoints are all that are known, by id.
type endpoints struct {
	list        []endpoint
	flags       []flag
	uncheckable int
}

// reserve makes room for the first endpoints.
func (es *endpoints) reserve(n int) {
	if len(es.list) == 0 {
		es.list, es.flags = make([]endpoint, 0, n), make([]flag, 0, n)
	}
}

// grow makes room for an id.
func (es *endpoints) grow(id health.EndpointID) {
	for len(es.list) <= int(id) {
		es.list, es.flags = append(es.list, endpoint{kind: none, unit: none}), append(es.flags, 0)
	}
}

// has tells whether an endpoint is known.
func (es *endpoints) has(id health.EndpointID) bool {
	return int(id) < len(es.list) && es.list[id].kind != none
}

func (es *endpoints) at(id health.EndpointID) endpoint      { return es.list[id] }
func (es *endpoints) key(id health.EndpointID) trie.Key     { return es.list[id].Key }
func (es *endpoints) hash(id health.EndpointID) uint64      { return es.list[id].Lo }
func (es *endpoints) unit(id health.EndpointID) int32       { return es.list[id].unit }
func (es *endpoints) setUnit(id health.EndpointID, i int32) { es.list[id].unit = i }

// set says what an endpoint is.
func (es *endpoints) set(id health.EndpointID, is endpoint) { es.list[id] = is }

// remove forgets an endpoint.
func (es *endpoints) remove(id health.EndpointID) {
	es.unmark(id, isUncheckable)
	es.list[id], es.flags[id] = endpoint{kind: none, unit: none}, 0
}

// is tells whether an endpoint has any of some flags.
func (es *endpoints) is(id health.EndpointID, any flag) bool { return es.flags[id]&any != 0 }

// marks are an endpoint's flags.
func (es *endpoints) marks(id health.EndpointID) flag { return es.flags[id] }

// mark gives an endpoint a flag.
func (es *endpoints) mark(id health.EndpointID, f flag) {
	if f == isUncheckable && es.flags[id]&f == 0 {
		es.uncheckable++
	}
	es.flags[id] |= f
}

// unmark takes a flag away.
func (es *endpoints) unmark(id health.EndpointID, f flag) {
	if f == isUncheckable && es.flags[id]&f != 0 {
		es.uncheckable--
	}
	es.flags[id] &^= f
}

// anyUncheckable tells whether any endpoint was told to be uncheckable.
func (es *endpoints) anyUncheckable() bool { return es.uncheckable > 0 }

// sum is what endpoints are in the digest.
func (es *endpoints) sum(ids []health.EndpointID) uint64 {
	sum := uint64(0)
	for _, id := range ids {
		sum += es.list[id].Lo
	}
	return sum
}

// from returns where the endpoints begin whose keys have a bit set; ids are in the
// order of keys, which differ in no bit before.
func (es *endpoints) from(ids []health.EndpointID, bit int) int {
	at, _ := slices.BinarySearchFunc(ids, true, func(id health.EndpointID, _ bool) int {
		if es.list[id].Bit(bit) {
			return 0
		}
		return -1
	})
	return at
}
