package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/rendezvous"
)

// kindKey is what endpoints of a kind have in common.
type kindKey struct {
	id             ClassID // of their class
	redundancy     int32
	zones, regions Placement
	rate           int64
}

// kind is the endpoints that want the same, each in or near its own zone.
type kind struct {
	kindKey
	class  *class
	number int32
	hash   uint64
	count  int     // endpoints
	counts []int32 // those without a zone, and those of each zone
	leaves []leaf  // by prefix
	hollow bool    // some of its units may be empty
}

// plain tells whether a kind's checkers are to be in distinct zones, wherever.
func (k *kind) plain() bool { return k.zones == Spread && k.regions == Anywhere }

// wants is how many seats each endpoint wants.
func (k *kind) wants() int { return int(k.redundancy) }

// add counts endpoints in a zone.
func (k *kind) add(zone, n int32) {
	for len(k.counts) <= int(zone)+1 {
		k.counts = append(k.counts, 0)
	}
	k.counts[zone+1] += n
	k.count += int(n)
}

// maxRedundancy bounds what a unit's list of seats can grow to.
const maxRedundancy = 1 << 10

// keyOf is what an endpoint wants.
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

// kinds are the kinds that there are endpoints of.
type kinds struct {
	classes *classes

	list   []*kind
	ids    map[kindKey]int32
	order  []*kind // by hash
	free   []int32
	latest *kind // that was asked for: a million endpoints ask for few
}

// find returns the kind of what endpoints want, which is made where there is none.
func (ks *kinds) find(key kindKey) *kind {
	if ks.latest == nil || ks.latest.kindKey != key {
		ks.latest = ks.look(key)
	}
	return ks.latest
}

// look is find without what is remembered.
func (ks *kinds) look(key kindKey) *kind {
	if id, ok := ks.ids[key]; ok {
		return ks.list[id]
	}
	id, c := ks.add(), ks.classes.at(key.id)
	ks.ids[key] = id
	h := rendezvous.Score(c.hash, uint64(key.redundancy))
	h = rendezvous.Score(rendezvous.Score(h, uint64(key.zones)<<8|uint64(key.regions)), uint64(key.rate))
	k := &kind{kindKey: key, class: c, number: id, hash: h}
	ks.list[id] = k
	at, _ := slices.BinarySearchFunc(ks.order, h, func(k *kind, h uint64) int { return cmp.Compare(k.hash, h) })
	ks.order = slices.Insert(ks.order, at, k)
	return k
}

// add makes room for one more kind.
func (ks *kinds) add() int32 {
	if n := len(ks.free); n > 0 {
		id := ks.free[n-1]
		ks.free = ks.free[:n-1]
		return id
	}
	ks.list = append(ks.list, nil)
	return int32(len(ks.list) - 1)
}

func (ks *kinds) at(id int32) *kind { return ks.list[id] }

// inOrder lists the kinds by hash.
func (ks *kinds) inOrder() []*kind { return ks.order }

// byNumber lists the kinds by number, nil where a number is free.
func (ks *kinds) byNumber() []*kind { return ks.list }

// len is above each kind's number.
func (ks *kinds) len() int { return len(ks.list) }

// forget forgets the kinds that no endpoint is of any more.
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
