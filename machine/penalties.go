package machine

import (
	"time"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/health"
	"hdsd/ruling"
	"hdsd/store"
)

// savePenaltiesEvery is how often changed penalties are stored at most. So a kill forgets
// no more than this of them, and an endpoint that flaps costs one row in each.
const savePenaltiesEvery = time.Second

// penalties stores what damping holds against endpoints. It knows only those that have a
// row.
type penalties struct {
	past    map[health.Hash]store.Penalty     // from before the start, of endpoints that are not there yet
	hashes  map[health.EndpointID]health.Hash // of those that are there
	changed map[health.Hash]*store.Penalty    // to be stored; nil removes a row
	saved   time.Time                         // when rows were last stored
}

func newPenalties() penalties {
	return penalties{hashes: map[health.EndpointID]health.Hash{}, changed: map[health.Hash]*store.Penalty{}}
}

// introduce gives a new endpoint the penalty that it had before the start.
func (p *penalties) introduce(now time.Time, judge *aggregate.Aggregator, id health.EndpointID, hash health.Hash) {
	found, ok := p.past[hash]
	if !ok {
		return
	}
	delete(p.past, hash)
	p.hashes[id] = hash
	judge.RestorePenalty(now, id, aggregate.Penalty{Value: found.Value, At: found.At, Suppressed: found.Suppressed})
}

// change records the penalties that the votes have changed.
func (p *penalties) change(rulings *ruling.Table, changes []aggregate.PenaltyChange) {
	for i := range changes {
		c := &changes[i]
		hash, known := p.hashes[c.Endpoint]
		switch {
		case c.Over && !known:
			continue // it has no row
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
		p.changed[hash] = &store.Penalty{Value: c.Penalty.Value, At: c.Penalty.At, Suppressed: c.Penalty.Suppressed}
	}
}

// forgetAbsent removes the rows of endpoints that no source has after a start.
func (p *penalties) forgetAbsent(rulings *ruling.Table) {
	for hash := range p.past {
		if !rulings.Remembers(hash) {
			delete(p.past, hash)
			p.changed[hash] = nil
		}
	}
}

// take returns what is to be stored: at most once in savePenaltiesEvery. It is nil if nothing is.
func (p *penalties) take(now time.Time) map[health.Hash]*store.Penalty {
	if len(p.changed) == 0 || now.Sub(p.saved) < savePenaltiesEvery {
		return nil
	}
	changed := p.changed
	p.changed, p.saved = map[health.Hash]*store.Penalty{}, now
	return changed
}
