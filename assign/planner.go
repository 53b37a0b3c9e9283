package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/trie"
	"hdsd/assign/internal/zone"
	"hdsd/health"
)

// Planner holds a plan. Make one with New. It passes each change to the parts that
// the package comment lists.
type Planner struct {
	zones     *zone.Table
	classes   *classes
	kinds     *kinds
	fleet     *fleet
	room      *room
	shares    *shares
	endpoints *endpoints
	forest    *forest
	seats     *seats
	tally     *tally
	needs     *needs
	agenda    *agenda
	work      *work
	journal   *journal
	restored  *restored

	leavers, suspended, newcomers []int32 // slots, in this step
	unfair                        bool    // loads may have become uneven
	waiting                       bool    // settling: the planner places nothing
}

// New makes an empty Planner.
func New(o Options) *Planner {
	o = o.withDefaults()
	p := &Planner{
		zones: zone.NewTable(), classes: &classes{ids: map[uint64]ClassID{}}, fleet: newFleet(), endpoints: &endpoints{}, restored: &restored{},
	}
	p.kinds = &kinds{classes: p.classes, ids: map[kindKey]int32{}}
	quotas := quota.NewTable()
	p.room = &room{quotas: quotas}
	p.shares = &shares{zones: p.zones, fleet: p.fleet, classes: p.classes, kinds: p.kinds, quotas: quotas, slack: o.Slack}
	p.seats = &seats{fleet: p.fleet, room: p.room, classes: p.classes}
	p.forest = &forest{zones: p.zones, kinds: p.kinds, endpoints: p.endpoints, seats: p.seats, unitLimit: o.Unit, unitSize: 1}
	p.tally = &tally{table: p.zones, fleet: p.fleet}
	rankings := &rankings{table: p.zones, fleet: p.fleet, room: p.room}
	p.needs = &needs{fleet: p.fleet, room: p.room, tally: p.tally, rankings: rankings}
	p.agenda = &agenda{forest: p.forest, seats: p.seats, needs: p.needs, rankings: rankings}
	p.work = newWork(p, rankings, &budget{limit: o.Looks})
	p.journal = &journal{
		fleet: p.fleet, room: p.room, forest: p.forest, endpoints: p.endpoints, seats: p.seats, needs: p.needs,
	}
	p.forest.grow()
	return p
}

// Class returns the number of a class; equal classes have the same number.
func (p *Planner) Class(c Class) ClassID {
	class, isNew := p.classes.find(c)
	if isNew {
		p.shares.addClass()
		class.grow(p.zones.Len())
		for s := range int32(p.fleet.len()) {
			if p.fleet.isKnown(s) {
				class.admit(p.worker(s), p.fleet.checker(s), p.room.leeway(s))
			}
		}
	}
	return class.id
}

// Restore stores a saved plan. Endpoints that are upserted later take their seats
// from it. Call it before any other method.
func (p *Planner) Restore(plan map[string][]health.Hash) {
	p.restored.fill(plan, func(id string) int32 {
		if s, ok := p.fleet.find(id); ok {
			return s
		}
		return p.open(id)
	})
}

// Apply changes the plan and returns the changes.
func (p *Planner) Apply(ch Change) Diff {
	waited := p.waiting
	p.waiting = ch.Settling
	p.seats.begin()
	p.agenda.begin()
	p.applyFleet(&ch)
	p.applyEndpoints(&ch)
	p.collect(waited)
	p.work.prune()
	cold := false
	if !p.waiting {
		p.shares.level()
		cold = p.work.run(p.unfair)
		p.unfair = false
		p.agenda.touchEmpty()
	}
	diff := p.journal.close(p.waiting, cold)
	p.end()
	return diff
}

// applyFleet applies the changes of checkers.
func (p *Planner) applyFleet(ch *Change) {
	for _, id := range ch.Leave {
		p.leave(id)
	}
	for _, id := range ch.Held {
		p.hold(id)
	}
	for _, id := range ch.Lost {
		p.suspend(id, false)
	}
	for _, id := range ch.Doubted {
		p.suspend(id, true)
	}
	for i := range ch.Join {
		p.join(&ch.Join[i])
	}
	for _, id := range ch.Blind {
		p.markBlind(id)
	}
	for _, l := range ch.Divided {
		p.divide(l, true)
	}
	for _, l := range ch.Undivided {
		p.divide(l, false)
	}
}

// applyEndpoints applies the changes of endpoints, and puts endpoints into units.
func (p *Planner) applyEndpoints(ch *Change) {
	for _, id := range ch.Remove {
		p.remove(id)
	}
	p.endpoints.reserve(len(ch.Upsert))
	p.forest.reserve(len(ch.Upsert))
	for i := range ch.Upsert {
		p.upsert(&ch.Upsert[i])
	}
	p.growZones()
	p.forest.divide(p.fleet.size(), p.start)
}

// start records a new unit.
func (p *Planner) start(i int32) {
	if p.journal.start(i) {
		p.agenda.visit(i) // the visit lists it as wanted if it still is
	} else {
		p.agenda.want(i)
	}
}

// upsert applies a new or changed endpoint.
func (p *Planner) upsert(e *Endpoint) {
	p.endpoints.grow(e.ID)
	k := p.kinds.find(keyOf(e))
	record, previous := endpoint{trie.Key{Hi: uint64(e.ClusterHash), Lo: uint64(e.Hash)}, k.number, none}, p.endpoints.get(e.ID)
	zone, i := p.ownZone(e), previous.unit
	if i != none && previous.kind == record.kind && previous.Key == record.Key && p.seats.unit(i).zone == zone {
		return
	}
	seed := int32(none)
	switch {
	case previous.kind == none:
		p.endpoints.mark(e.ID, isNew)
		if !p.restored.empty() {
			seed = p.forest.bring(p.restored.claim(uint64(e.Hash), p.fleet.isSeated), nil)
		}
		p.unfair = p.unfair || seed == none && !p.waiting
	case i == none: // the Change lists it twice
		seed = p.forest.withdraw(e.ID)
	default:
		u := p.seats.unit(i)
		seed = p.forest.bring(u.seats, u.substitutes)
		p.journal.note(e.ID, false, u.kind.id != e.Class)
		p.endpoints.mark(e.ID, isMoved)
		p.forest.remove(e.ID)
		p.unfair = true
	}
	p.endpoints.set(e.ID, record)
	p.forest.add(trie.Item{Key: record.Key, ID: e.ID, Seed: seed, Kind: record.kind, Zone: zone}, k)
}

// remove forgets an endpoint.
func (p *Planner) remove(id health.EndpointID) {
	if !p.endpoints.has(id) {
		return
	}
	p.journal.note(id, true, false)
	p.forest.remove(id)
	p.endpoints.remove(id)
	p.unfair = true
}

// ownZone returns an endpoint's zone, or none.
func (p *Planner) ownZone(e *Endpoint) int32 {
	if e.Locality.Region == "" && e.Locality.Zone == "" {
		return none
	}
	return p.zones.Number(e.Locality)
}

// growZones makes room for all zones in every slice indexed by zone.
func (p *Planner) growZones() {
	if p.tally.grow() {
		p.forest.grow()
		p.classes.grow(p.zones.Len())
	}
}

// collect lists the units that this step may affect.
func (p *Planner) collect(waited bool) {
	freed := !p.waiting && p.room.resetFreed()
	if waited && !p.waiting {
		p.agenda.visitAll()
		return
	}
	for _, list := range [][]int32{p.leavers, p.suspended, p.newcomers} {
		for _, s := range list {
			for _, i := range p.seats.unitsOf(s) {
				p.agenda.visit(i)
			}
		}
	}
	for _, s := range p.leavers {
		p.seats.disown(s)
	}
	if changed := p.needs.drainChanged(); len(changed) > 0 {
		for i := range p.forest.units() {
			if z := p.seats.unit(i).zone; z != none && slices.Contains(changed, z) {
				p.agenda.visit(i)
			}
		}
	}
	if (len(p.newcomers) > 0 || freed) && !p.waiting {
		p.agenda.visitWanted(p.newcomers, freed)
	}
}

// end forgets the state of this step.
func (p *Planner) end() {
	for _, s := range p.leavers {
		p.vacate(s)
	}
	p.zones.Forget()
	p.kinds.forget()
	p.leavers, p.suspended, p.newcomers = p.leavers[:0], p.suspended[:0], p.newcomers[:0]
	p.restored.compact()
}
