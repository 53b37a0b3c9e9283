package assign

import (
	"cmp"
	"slices"

	"hdsd/health"
)

// endpoint is what is kept of an endpoint.
type endpoint struct {
	key        // hashes of its cluster and of itself
	kind int32 // none if it is not known
	unit int32 // none until it is grouped
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
	key     key
	before  []int32
	removed bool
	renewed bool // has another class
}

// kindKey is what endpoints of a kind have in common.
type kindKey struct {
	class      ClassID
	zone       int32 // the endpoints' own; none where they have none
	redundancy int32
}

// kind is the endpoints that want the same.
type kind struct {
	kindKey
	hash    uint64
	count   int     // endpoints
	leaves  []int32 // units, by prefix
	pending []item
	hollow  bool // listed in Planner.hollow
}

func (p *Planner) kindOf(e *Endpoint) int32 {
	k := kindKey{class: e.Class, zone: none, redundancy: int32(min(max(e.Redundancy, 1), maxRedundancy))}
	if e.Locality.Region != "" || e.Locality.Zone != "" {
		k.zone = p.zoneOf(e.Locality)
	}
	if p.haveKey && p.lastKind == k {
		return p.lastKindID
	}
	id, ok := p.kindIDs[k]
	if !ok {
		id = int32(len(p.kinds))
		p.kindIDs[k] = id
		h := mix(p.classes[k.class].hash, uint64(k.redundancy))
		if k.zone != none {
			h = mix(h, p.zoneHash[k.zone])
		}
		p.kinds = append(p.kinds, kind{kindKey: k, hash: h})
		at, _ := slices.BinarySearchFunc(p.kindOrder, h, func(o int32, h uint64) int {
			return cmp.Compare(p.kinds[o].hash, h)
		})
		p.kindOrder = slices.Insert(p.kindOrder, at, id)
	}
	p.haveKey, p.lastKind, p.lastKindID = true, k, id
	return id
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
	k, where := p.kindOf(e), key{uint64(e.ClusterHash), uint64(e.Hash)}
	if at.kind == k && at.key == where {
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
	at.key, at.kind, at.unit = where, k, none
	p.await(k, item{key: where, id: e.ID, seed: seed})
}

// await queues an endpoint to be grouped.
func (p *Planner) await(k int32, i item) {
	at := &p.kinds[k]
	if len(at.pending) == 0 {
		p.pending = append(p.pending, k)
	}
	at.pending = append(at.pending, i)
	at.count++
}

// withdraw takes an endpoint out of the queue again.
func (p *Planner) withdraw(id health.EndpointID) int32 {
	k := &p.kinds[p.endpoints[id].kind]
	i := slices.IndexFunc(k.pending, func(i item) bool { return i.id == id })
	seed := k.pending[i].seed
	k.pending = slices.Delete(k.pending, i, i+1)
	k.count--
	return seed
}

// note keeps the seats that an endpoint has now for the Diff.
func (p *Planner) note(id health.EndpointID, renewed bool) {
	at := &p.endpoints[id]
	u := &p.units[at.unit]
	p.changed = append(p.changed, changed{id: id, key: at.key, before: u.all(), renewed: renewed})
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
	p.flags[id] = 0
}

// detach takes an endpoint out of its unit.
func (p *Planner) detach(id health.EndpointID) {
	at := &p.endpoints[id]
	u, k := &p.units[at.unit], &p.kinds[at.kind]
	i := slices.Index(u.members, id)
	u.members = slices.Delete(u.members, i, i+1)
	for _, s := range u.seats {
		p.load[s]--
	}
	for _, s := range u.extra {
		p.load[s]--
		p.spare[s]--
	}
	k.count--
	if len(u.members) == 0 && !k.hollow {
		k.hollow = true
		p.hollow = append(p.hollow, at.kind)
	}
}
