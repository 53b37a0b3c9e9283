package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/ruling"
)

// penaltyInterval is the shortest time between two entries with penalties. A kill loses no more than this
// time of changes, and an endpoint that flaps costs one row in each.
const penaltyInterval = time.Second

// penalties collects the damping penalties to store. It knows only endpoints with a stored penalty.
type penalties struct {
	restored map[health.Hash]log.Penalty       // penalties from before the start, of endpoints that are still absent
	hashes   map[health.EndpointID]health.Hash // present endpoints with a stored penalty
	changed  map[health.Hash]*log.Penalty      // to store; nil removes a penalty
	taken    time.Time                         // time of the latest take
}

func newPenalties() penalties {
	return penalties{hashes: map[health.EndpointID]health.Hash{}, changed: map[health.Hash]*log.Penalty{}}
}

// restore gives a new endpoint its penalty from before the start.
func (p *penalties) restore(now time.Time, judge *aggregate.Aggregator, id health.EndpointID, hash health.Hash) {
	found, ok := p.restored[hash]
	if !ok {
		return
	}
	delete(p.restored, hash)
	p.hashes[id] = hash
	judge.RestorePenalty(now, id, aggregate.Penalty{Value: found.Value, At: found.At, Suppressed: found.Suppressed})
}

// update records changed penalties.
func (p *penalties) update(rulings *ruling.Table, changes []aggregate.PenaltyChange) {
	for i := range changes {
		c := &changes[i]
		hash, known := p.hashes[c.Endpoint]
		switch {
		case c.Over && !known:
			continue // the store has no penalty of it
		case c.Over:
			delete(p.hashes, c.Endpoint)
			p.changed[hash] = nil
			continue
		case !known:
			k, index := rulings.At(c.Endpoint)
			if k == nil || index == catalog.None {
				continue // nobody checks it any more
			}
			hash = k.Hashes[index]
			p.hashes[c.Endpoint] = hash
		}
		p.changed[hash] = &log.Penalty{Value: c.Penalty.Value, At: c.Penalty.At, Suppressed: c.Penalty.Suppressed}
	}
}

// forgetAbsent removes the stored penalties of endpoints that no source has after a start.
func (p *penalties) forgetAbsent(rulings *ruling.Table) {
	for hash := range p.restored {
		if !rulings.Remembers(hash) {
			delete(p.restored, hash)
			p.changed[hash] = nil
		}
	}
}

// take returns the changes to store, at most once in penaltyInterval; nil if there are none.
func (p *penalties) take(now time.Time) map[health.Hash]*log.Penalty {
	if len(p.changed) == 0 || now.Sub(p.taken) < penaltyInterval {
		return nil
	}
	changed := p.changed
	p.changed, p.taken = map[health.Hash]*log.Penalty{}, now
	return changed
}
