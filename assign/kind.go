package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/rendezvous"
)

// kindKey holds what the endpoints of a kind have in common.
type kindKey struct {
	id             ClassID // their class
	redundancy     int32
	zones, regions Placement
	rate           int64
}

// kind groups the endpoints with equal demands, each relative to its own zone.
type kind struct {
	kindKey
	class  *class
	number int32
	hash   uint64
	count  int     // endpoints
	counts []int32 // endpoints without a zone, then endpoints in each zone
	leaves []leaf  // by prefix
	hollow bool    // some of its units may be empty
}

// plain reports whether a kind's checkers should be in distinct zones, in any region.
func (k *kind) plain() bool { return k.zones == Spread && k.regions == Anywhere }

// wants returns how many seats each endpoint wants.
func (k *kind) wants() int { return int(k.redundancy) }

// add adds n endpoints in a zone to the counts.
func (k *kind) add(zone, n int32) {
	for len(k.counts) <= int(zone)+1 {
		k.counts = append(k.counts, 0)
	}
	k.counts[zone+1] += n
	k.count += int(n)
}

// maxRedundancy bounds the length of a unit's list of seats.
const maxRedundancy = 1 << 10

// keyOf returns the kind of an endpoint.
func keyOf(e *Endpoint) kindKey {
	k := kindKey{
		id: e.Class, redundancy: int32(min(max(e.Redundancy, 1), maxRedundancy)),
		zones: e.Zones, regions: e.Regions, rate: max(e.Rate, 0),
	}
	if k.zones == Default {
		k.zones = Spread
	}
	if k.regions == Default {
		k.regions = Anywhere
	}
	return k
}

// kinds holds the kinds that have endpoints.
type kinds struct {
	classes *classes

	list   []*kind
	ids    map[kindKey]int32
	order  []*kind // by hash
	free   []int32
	latest *kind // the latest one found: most calls ask for the same kind
}

// find returns the kind with a key, and makes it if there is none.
func (ks *kinds) find(key kindKey) *kind {
	if ks.latest == nil || ks.latest.kindKey != key {
		ks.latest = ks.look(key)
	}
	return ks.latest
}

// look is find without the cache.
func (ks *kinds) look(key kindKey) *kind {
	if id, ok := ks.ids[key]; ok {
		return ks.list[id]
	}
	id, c := ks.add(), ks.classes.byID(key.id)
	ks.ids[key] = id
	h := rendezvous.Score(c.hash, uint64(key.redundancy))
	h = rendezvous.Score(rendezvous.Score(h, uint64(key.zones)<<8|uint64(key.regions)), uint64(key.rate))
	k := &kind{kindKey: key, class: c, number: id, hash: h}
	ks.list[id] = k
	index, _ := slices.BinarySearchFunc(ks.order, h, func(k *kind, h uint64) int { return cmp.Compare(k.hash, h) })
	ks.order = slices.Insert(ks.order, index, k)
	return k
}

// add returns a free number for a new kind.
func (ks *kinds) add() int32 {
	if n := len(ks.free); n > 0 {
		id := ks.free[n-1]
		ks.free = ks.free[:n-1]
		return id
	}
	ks.list = append(ks.list, nil)
	return int32(len(ks.list) - 1)
}

func (ks *kinds) get(id int32) *kind { return ks.list[id] }

// inOrder lists the kinds by hash.
func (ks *kinds) inOrder() []*kind { return ks.order }

// byNumber lists the kinds by number, nil where a number is free.
func (ks *kinds) byNumber() []*kind { return ks.list }

// len is greater than every kind's number.
func (ks *kinds) len() int { return len(ks.list) }

// forget removes the kinds that have no endpoints.
func (ks *kinds) forget() {
	ks.latest = nil
	ks.order = slices.DeleteFunc(ks.order, func(k *kind) bool {
		if k.count > 0 || len(k.leaves) > 0 {
			return false
		}
		delete(ks.ids, k.kindKey)
		ks.list[k.number] = nil
		ks.free = append(ks.free, k.number)
		return true
	})
}
