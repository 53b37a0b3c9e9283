package assign

import (
	"slices"

	"hdsd/assign/internal/quota"
	"hdsd/assign/internal/trie"
	"hdsd/assign/internal/zone"
	"hdsd/health"
)

// Planner holds a plan. Make one with New.
type Planner struct {
	options Options

	// The fleet. A slot is a checker's number while it has a seat; no decision
	// depends on it. The slices beside slots are indexed alike.
	slots  []slot
	hash   []uint64 // of the node id
	home   []int32  // zone, -1 while not known
	load   []int32  // endpoints it checks, as a substitute too
	spare  []int32  // those as a substitute
	rate   []int64  // what they cost: checks in 1,000 seconds
	can    []quota.Capacity
	part   []uint64         // of the digest
	live   []bool           // its stream is up, and nobody stands in for it
	alive  int              // how many of them are
	doubt  []bool           // it is not live as it is doubted
	blind  []bool           // it is not live as it is blind
	index  map[string]int32 // by node id
	free   []int32          // slots
	seated int              // slots in use

	ceilings int     // checkers that have one
	fresh    []int32 // slots that have not pulled their share yet

	zones *zone.Table

	classes  []class
	classID  map[uint64]ClassID
	outdated bool // classes came since cohorts were told apart

	quotas *quota.Table

	// The endpoints, by EndpointID, and how they are grouped.
	endpoints []endpoint
	flags     []flag
	kinds     []kind
	kindIDs   map[kindKey]int32
	kindOrder []int32 // kinds by hash
	freeKinds []int32
	units     []unit
	chairs    []int32 // what units' seats are cut from
	bare      int     // endpoints that are told to be uncheckable
	freeUnits []int32
	unit      int // most endpoints in a unit

	wanted []int32 // units that could use a checker that comes

	restored restored
	digest   uint64
	held     bool // was settling: everything is to be looked at
	unfair   bool // something happened that calls for balancing

	// Of one Apply.
	step                  uint32
	settling              bool
	left, suspended, came []int32     // slots
	pending               []trie.Item // endpoints to be grouped
	looks                 int         // at others that could make room
	freed                 bool        // a checker with a ceiling has room again
	hollow                []int32     // kinds with empty units
	seeds                 seeds
	visits                []int32   // units to look at
	dirty                 []int32   // units whose seats changed
	aside                 [][]int32 // units' seats, while another plan is tried
	severed               []int32   // units that were parted from others and not looked at since
	added                 []health.EndpointID
	changed               []changed
	scratch               scratch
	cold                  bool     // nothing was assigned before
	current               *ranking // of the unit at hand
	common                ranking  // of the leaf at hand, where there are many zones
	used, usedRegions     []int32  // seats of the unit at hand
	groups                []group  // of the leaf at hand, by own zone
	lastKind              kindKey
	lastKindID            int32
	haveKey               bool
}

// Apply changes the plan and tells how.
func (p *Planner) Apply(ch Change) Diff {
	p.begin(ch.Settling)
	for _, id := range ch.Leave {
		p.leave(id)
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
		p.outnumber(id)
	}
	for _, id := range ch.Remove {
		p.remove(id)
	}
	p.pending = make([]trie.Item, 0, len(ch.Upsert))
	if len(p.endpoints) == 0 {
		p.endpoints, p.flags = make([]endpoint, 0, len(ch.Upsert)), make([]flag, 0, len(ch.Upsert))
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
	p.current = nil
	p.haveKey, p.cold = false, false
	p.looks = 0
}

// plan puts everything right that collect found.
func (p *Planner) plan() {
	p.level()
	p.cold = p.assigned() == 0
	p.enforce()
	p.fill(p.visits)
	p.refill()
	if newcomers := p.newcomers(); len(newcomers) > 0 && !p.cold && !p.reconsider(newcomers) {
		p.pull(newcomers)
	}
	const rounds = 4 // room that is left is used, and may be used too much
	for n := 0; p.unfair && n < rounds; n++ {
		p.shed()
		p.unfair = p.freed
		p.refill()
	}
	p.refill()
	p.unfair, p.held = false, false
}

// refill uses the room below ceilings that moves have left.
func (p *Planner) refill() {
	for n := 0; p.freed && n < 8; n++ {
		p.freed = false
		p.fill(slices.Clone(p.review()))
	}
}

// end forgets what only concerned this Apply.
func (p *Planner) end() {
	p.held = p.held || p.settling
	for _, s := range p.left {
		p.vacate(s)
	}
	p.zones.Forget()
	p.forgetKinds()
	p.left, p.suspended, p.came = p.left[:0], p.suspended[:0], p.came[:0]
	p.visits, p.dirty = p.visits[:0], p.dirty[:0]
	p.added, p.changed, p.pending = nil, nil, nil
	p.scratch.kept = p.scratch.kept[:0]
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
