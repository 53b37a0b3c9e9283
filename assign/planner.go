package assign

import "hdsd/health"

// Planner holds a plan. Make one with New.
type Planner struct {
	options Options

	// The fleet. A slot is a checker's number while it has a seat; no decision
	// depends on it. The slices beside slots are indexed alike.
	slots  []slot
	hash   []uint64         // of the node id
	home   []int32          // zone, -1 while not known
	load   []int32          // endpoints it checks, as a substitute too
	spare  []int32          // those as a substitute
	live   []bool           // its stream is up
	index  map[string]int32 // by node id
	free   []int32          // slots
	seated int              // slots in use

	zoneIDs  map[zone]int32
	zoneHash []uint64
	classes  []class
	classID  map[uint64]ClassID

	// The endpoints, by EndpointID, and how they are grouped.
	endpoints []endpoint
	flags     []flag
	kinds     []kind
	kindIDs   map[kindKey]int32
	kindOrder []int32 // kinds by hash
	units     []unit
	freeUnits []int32
	unit      int // most endpoints in a unit

	restored restored
	digest   uint64
	held     bool // was settling: everything is to be looked at
	unfair   bool // something happened that calls for balancing

	// Of one Apply.
	step                  uint32
	settling              bool
	left, wentLost, came  []int32 // slots
	pending               []int32 // kinds with endpoints to be grouped
	hollow                []int32 // kinds with empty units
	seeds                 seeds
	visits                []int32 // units to look at
	dirty                 []int32 // units whose seats changed
	added                 []health.EndpointID
	changed               []changed
	scratch               scratch
	raced                 int32 // the unit that ranking is of, -1 none
	ranking               []rank
	used                  []int32 // seats of the unit at hand by zone
	lastLocality          health.Locality
	lastZone              int32
	lastKind              kindKey
	lastKindID            int32
	haveLocality, haveKey bool
}

// Apply changes the plan and tells how.
func (p *Planner) Apply(ch Change) Diff {
	p.begin(ch.Settling)
	for _, id := range ch.Leave {
		p.leave(id)
	}
	for _, id := range ch.Lost {
		p.lost(id)
	}
	for i := range ch.Join {
		p.join(&ch.Join[i])
	}
	for _, id := range ch.Remove {
		p.remove(id)
	}
	for i := range ch.Upsert {
		p.upsert(&ch.Upsert[i])
	}
	p.group()
	p.collect()
	for _, u := range p.visits {
		p.prune(u)
	}
	if !p.settling {
		p.plan()
	}
	diff := p.diff()
	p.end()
	return diff
}

func (p *Planner) begin(settling bool) {
	p.step++
	p.settling = settling
	p.raced = -1
	p.haveLocality, p.haveKey = false, false
}

// plan puts everything right that collect found.
func (p *Planner) plan() {
	p.level()
	cold := p.assigned() == 0
	p.fill(p.visits)
	if newcomers := p.newcomers(); len(newcomers) > 0 {
		if !cold {
			p.pull(newcomers)
			p.reconsider(len(newcomers))
		}
		for _, s := range newcomers {
			p.slots[s].fresh = false
		}
	}
	if p.unfair && !cold {
		p.shed()
	}
	p.unfair = false
	p.held = false
}

// end forgets what only concerned this Apply.
func (p *Planner) end() {
	p.held = p.held || p.settling
	for _, s := range p.left {
		p.vacate(s)
	}
	p.left, p.wentLost, p.came = p.left[:0], p.wentLost[:0], p.came[:0]
	p.visits, p.dirty = p.visits[:0], p.dirty[:0]
	p.added, p.changed = nil, nil
	p.seeds = seeds{}
	p.restored.compact()
}

// assigned tells how many checks have a checker.
func (p *Planner) assigned() int {
	sum := 0
	for _, n := range p.load {
		sum += int(n)
	}
	return sum
}
