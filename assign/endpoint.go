package assign

import (
	"slices"

	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// endpoint is the record of an endpoint.
type endpoint struct {
	trie.Key       // hashes of its cluster and of the endpoint itself
	kind     int32 // none if the endpoint is unknown
	unit     int32 // none until the endpoint is in a unit
}

// flag says what the next Diff reports about an endpoint.
type flag uint8

const (
	isNew         flag = 1 << iota // had no seats before this step
	isMoved                        // changed its kind in this step
	isUncheckable                  // was reported as uncheckable
)

// endpoints holds all known endpoints, by id.
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

// has reports whether an endpoint is known.
func (es *endpoints) has(id health.EndpointID) bool {
	return int(id) < len(es.list) && es.list[id].kind != none
}

func (es *endpoints) get(id health.EndpointID) endpoint     { return es.list[id] }
func (es *endpoints) key(id health.EndpointID) trie.Key     { return es.list[id].Key }
func (es *endpoints) hash(id health.EndpointID) uint64      { return es.list[id].Lo }
func (es *endpoints) unit(id health.EndpointID) int32       { return es.list[id].unit }
func (es *endpoints) setUnit(id health.EndpointID, i int32) { es.list[id].unit = i }

// set stores the record of an endpoint.
func (es *endpoints) set(id health.EndpointID, e endpoint) { es.list[id] = e }

// remove forgets an endpoint.
func (es *endpoints) remove(id health.EndpointID) {
	es.unmark(id, isUncheckable)
	es.list[id], es.flags[id] = endpoint{kind: none, unit: none}, 0
}

// hasFlag reports whether an endpoint has any of the given flags.
func (es *endpoints) hasFlag(id health.EndpointID, flags flag) bool { return es.flags[id]&flags != 0 }

// marks returns an endpoint's flags.
func (es *endpoints) marks(id health.EndpointID) flag { return es.flags[id] }

// mark gives an endpoint a flag.
func (es *endpoints) mark(id health.EndpointID, f flag) {
	if f == isUncheckable && es.flags[id]&f == 0 {
		es.uncheckable++
	}
	es.flags[id] |= f
}

// unmark removes a flag.
func (es *endpoints) unmark(id health.EndpointID, f flag) {
	if f == isUncheckable && es.flags[id]&f != 0 {
		es.uncheckable--
	}
	es.flags[id] &^= f
}

// anyUncheckable reports whether any endpoint was reported as uncheckable.
func (es *endpoints) anyUncheckable() bool { return es.uncheckable > 0 }

// sum returns the endpoints' part of the digest.
func (es *endpoints) sum(ids []health.EndpointID) uint64 {
	sum := uint64(0)
	for _, id := range ids {
		sum += es.list[id].Lo
	}
	return sum
}

// firstWith returns the index of the first endpoint whose key has the bit set. The ids are in
// the order of their keys, which do not differ before that bit.
func (es *endpoints) firstWith(ids []health.EndpointID, bit int) int {
	index, _ := slices.BinarySearchFunc(ids, true, func(id health.EndpointID, _ bool) int {
		if es.list[id].Bit(bit) {
			return 0
		}
		return -1
	})
	return index
}
