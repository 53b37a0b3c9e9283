package assign

import (
	"cmp"
	"slices"

	"hdsd/assign/internal/rendezvous"
	"hdsd/assign/internal/trie"
	"hdsd/health"
)

// endpoint is what is kept of an endpoint.
type endpoint struct {
	trie.Key       // hashes of its cluster and of itself
	kind     int32 // none if it is not known
	unit     int32 // none until it is grouped
}

const none = -1

// flag says what is to be told of an endpoint.
type flag uint8

const (
	isNew   flag = 1 << iota // had no seats before this Apply
	isMoved                  // changed its kind in this Apply
	isBare                   // was told to be uncheckable
)

// changed is an endpoint whose earlier seats are no longer those of its unit.
type changed struct {
	id      health.EndpointID
	key     trie.Key
	before  []int32
	removed bool
	renewed bool // has another class
}

// kindKey is what endpoints of a kind have in common.
type kindKey struct {
	class          ClassID
	redundancy     int32
	zones, regions Placement
	rate           int64
}

// kind is the endpoints that want the same, each in or near its own zone.
type kind struct {
	kindKey
	hash   uint64
	count  int     // endpoints
	counts []int32 // those without a zone, and those of each zone
	leaves []leaf  // by prefix
	hollow bool    // listed in Planner.hollow
}

// plain tells whether a kind's checkers are to be in distinct zones, wherever.
func (k *kind) plain() bool { return k.zones == Spread && k.regions == Anywhere }

func (k *kind) add(zone, n int32) {
	for len(k.counts) <= int(zone)+1 {
		k.counts = append(k.counts, 0)
	}
	k.counts[zone+1] += n
	k.count += int(n)
}

// count counts endpoints of a kind in a zone.
func (p *Planner) count(k, zone, n int32) {
	p.kinds[k].add(zone, n)
	p.zones.Occupy(zone, n)
}

func (p *Planner) kindOf(e *Endpoint) int32 {
	k := kindKey{
		class: e.Class, redundancy: int32(min(max(e.Redundancy, 1), maxRedundancy)),
		zones: e.Zones, regions: e.Regions, rate: max(e.Rate, 0),
	}
	if k.zones == Default {
		k.zones = Spread
	}
	if k.regions == Default {
		k.regions = Anywhere
	}
	if p.haveKey && p.lastKind == k {
		return p.lastKindID
	}
	id, ok := p.kindIDs[k]
	if !ok {
		id = p.addKind()
		p.kindIDs[k] = id
		h := rendezvous.Score(p.classes[k.class].hash, uint64(k.redundancy))
		h = rendezvous.Score(rendezvous.Score(h, uint64(k.zones)<<8|uint64(k.regions)), uint64(k.rate))
		p.kinds[id] = kind{kindKey: k, hash: h}
		at, _ := slices.BinarySearchFunc(p.kindOrder, h, func(o int32, h uint64) int {
			return cmp.Compare(p.kinds[o].hash, h)
		})
		p.kindOrder = slices.Insert(p.kindOrder, at, id)
	}
	p.haveKey, p.lastKind, p.lastKindID = true, k, id
	return id
}

// addKind makes room for one more kind.
func (p *Planner) addKind() int32 {
	if n := len(p.freeKinds); n > 0 {
		id := p.freeKinds[n-1]
		p.freeKinds = p.freeKinds[:n-1]
		return id
	}
	p.kinds = append(p.kinds, kind{})
	return int32(len(p.kinds) - 1)
}

// forgetKinds forgets the kinds that no endpoint is of any more.
func (p *Planner) forgetKinds() {
	p.kindOrder = slices.DeleteFunc(p.kindOrder, func(id int32) bool {
		k := &p.kinds[id]
		if k.count > 0 || len(k.leaves) > 0 {
			return false
		}
		delete(p.kindIDs, k.kindKey)
		*k = kind{}
		p.freeKinds = append(p.freeKinds, id)
		return true
	})
}

// maxRedundancy bounds what a unit's list of seats can grow to.
const maxRedundancy = 1 << 10

func (p *Planner) known(id health.EndpointID) bool {
	return int(id) < len(p.endpoints) && p.endpoints[id].kind != none
}

func (p *Planner) upsert(e *Endpoint) {
	for len(p.endpoints) <= int(e.ID) {
		p.endpoints = append(p.endpoints, endpoint{kind: none, unit: none})
		p.flags = append(p.flags, 0)
	}
	at := &p.endpoints[e.ID]
	k, zone, where := p.kindOf(e), p.ownZone(e), trie.Key{Hi: uint64(e.ClusterHash), Lo: uint64(e.Hash)}
	if at.kind == k && at.Key == where && at.unit != none && p.units[at.unit].zone == zone {
		return
	}
	var seed int32
	switch {
	case at.kind == none:
		p.flags[e.ID] = isNew
		seed = p.seeds.intern(p.claim(uint64(e.Hash)), nil)
		p.unfair = p.unfair || seed == none && !p.settling
	case at.unit == none: // said twice in one Change
		seed = p.withdraw(e.ID)
	default:
		u := &p.units[at.unit]
		seed = p.seeds.intern(u.seats, u.extra)
		p.note(e.ID, p.kinds[at.kind].class != e.Class)
		p.flags[e.ID] |= isMoved
		p.detach(e.ID)
	}
	at.Key, at.kind, at.unit = where, k, none
	p.pending = append(p.pending, trie.Item{Key: where, ID: e.ID, Seed: seed, Kind: k, Zone: zone})
	p.count(k, zone, 1)
}

// ownZone is the zone that an endpoint is in, none if it is in none.
func (p *Planner) ownZone(e *Endpoint) int32 {
	if e.Locality.Region == "" && e.Locality.Zone == "" {
		return none
	}
	return p.zoneOf(e.Locality)
}

// withdraw takes an endpoint out of those that wait to be grouped.
func (p *Planner) withdraw(id health.EndpointID) int32 {
	i := slices.IndexFunc(p.pending, func(i trie.Item) bool { return i.ID == id })
	was := p.pending[i]
	p.pending = slices.Delete(p.pending, i, i+1)
	p.count(was.Kind, was.Zone, -1)
	return was.Seed
}

// note keeps the seats that an endpoint has now for the Diff.
func (p *Planner) note(id health.EndpointID, renewed bool) {
	at := &p.endpoints[id]
	u := &p.units[at.unit]
	p.changed = append(p.changed, changed{id: id, key: at.Key, before: u.all(), renewed: renewed})
	p.unfair = true
}

func (p *Planner) remove(id health.EndpointID) {
	if !p.known(id) {
		return
	}
	p.note(id, false)
	p.changed[len(p.changed)-1].removed = true
	p.detach(id)
	p.endpoints[id] = endpoint{kind: none, unit: none}
	if p.flags[id]&isBare != 0 {
		p.bare--
	}
	p.flags[id] = 0
}

// detach takes an endpoint out of its unit.
func (p *Planner) detach(id health.EndpointID) {
	at := &p.endpoints[id]
	u, k := &p.units[at.unit], &p.kinds[at.kind]
	i := slices.Index(u.members, id)
	u.members = slices.Delete(u.members, i, i+1)
	u.sum -= at.Lo
	for _, s := range u.seats {
		p.book(s, -1, u.kind)
	}
	for _, s := range u.extra {
		p.book(s, -1, u.kind)
		p.spare[s]--
	}
	p.count(at.kind, u.zone, -1)
	if len(u.members) == 0 && !k.hollow {
		k.hollow = true
		p.hollow = append(p.hollow, at.kind)
	}
}
