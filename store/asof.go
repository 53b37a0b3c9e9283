package store

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Began returns the time from which health is known: the start of the history, or the oldest
// transition kept.
func (h *history) Began() (began time.Time, err error) {
	err = h.db.view(func(tx *bolt.Tx) error {
		began = h.began(tx)
		return nil
	})
	return began, err
}

func (h *history) began(tx *bolt.Tx) time.Time {
	start := h.time.timeline().Begun(h.created, h.time.edge())
	if early := readEarly(tx); early > 0 {
		start = max(start, min(early, math.MaxInt64-1)+1)
	}
	if k, _ := tx.Bucket(transitions).Cursor().First(); len(k) == 8 {
		start = min(start, number(k))
	}
	return timeOf(start)
}

// Endpoints lists up to limit endpoints that have or had a verdict, sorted by Endpoint.Compare,
// starting behind after unless that is nil. The names of clusters are sorted; no names or an
// empty address match any. Unless moved, it omits endpoints that only changed their locality.
func (h *history) Endpoints(clusters []string, address string, moved bool, after *health.Endpoint, limit int) (found []health.Endpoint, err error) {
	if len(clusters) == 0 {
		clusters = h.clusters.sorted()
	}
	for _, name := range clusters {
		if after != nil && name < after.Cluster {
			continue
		}
		if found, err = h.endpoints(found, name, address, moved, after); err != nil {
			return nil, err
		}
		if len(found) >= limit {
			return found[:limit], nil
		}
	}
	return found, nil
}

// endpoints appends those of one cluster.
func (h *history) endpoints(found []health.Endpoint, cluster, address string, moved bool, after *health.Endpoint) ([]health.Endpoint, error) {
	before, shared := len(found), names{}
	err := h.db.view(func(tx *bolt.Tx) error {
		var past *past // made when needed
		if !moved && tx.Bucket(moves) != nil {
			past = h.past(tx)
		}
		take := func(k, v []byte) {
			t, ok := openCurrent(k, v, shared)
			h.damage.unless(ok, current, k)
			if ok && t.Endpoint.Cluster == cluster && (address == "" || t.Endpoint.Address == address) &&
				(after == nil || t.Endpoint.Compare(*after) > 0) &&
				(past == nil || !past.isElsewhere(k)) {
				found = append(found, t.Endpoint)
			}
		}
		rows := tx.Bucket(current)
		if address != "" {
			for _, k := range endpointsOf(tx, &Query{Cluster: cluster, Address: address}) {
				take(k, rows.Get(k))
			}
			return nil
		}
		prefix, cursor := key(uint64(hashOf(cluster))), rows.Cursor()
		for k, v := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cursor.Next() {
			take(k, v)
		}
		return nil
	})
	slices.SortFunc(found[before:], health.Endpoint.Compare)
	return found, err
}

// AsOf returns the verdicts at time t: the results of the last transitions at or before t.
func (h *history) AsOf(endpoints []health.Endpoint, t time.Time) (held []health.Verdict, err error) {
	held = make([]health.Verdict, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		began := h.began(tx)
		past := h.past(tx)
		for i := range endpoints {
			held[i] = past.asOf(&endpoints[i], nanos(t), began)
		}
		return nil
	})
	return held, err
}

// past reads the history of single endpoints in one transaction.
type past struct {
	dates    *dates
	damage   *damage
	rows     *bolt.Bucket
	current  *bolt.Bucket
	endpoint *bolt.Cursor
	moves    *bolt.Cursor // nil if there are none
	shared   names
	gaps     []gap
	courses  map[string]*course // by row, of the endpoint that is looked at; nil: none are read
}

func (h *history) past(tx *bolt.Tx) *past {
	p := &past{
		dates: h.time.dates(tx), damage: h.damage, shared: names{},
		rows: tx.Bucket(transitions), current: tx.Bucket(current), endpoint: tx.Bucket(byEndpoint).Cursor(), gaps: h.gaps(tx),
	}
	if rows := tx.Bucket(moves); rows != nil {
		p.moves = rows.Cursor()
	}
	return p
}

// rowOf returns the key of an endpoint in the indices.
func rowOf(e *health.Endpoint) []byte { return key(uint64(hashOf(e.Cluster)), uint64(e.Hash())) }

// latest returns the last transition of an endpoint, even if it is no longer kept, or
// false if there never was one.
func (p *past) latest(row []byte) (health.Transition, bool) {
	v := p.current.Get(row)
	if v == nil {
		return health.Transition{}, false
	}
	t, ok := openCurrent(row, v, p.shared)
	p.damage.unless(ok, current, row)
	p.dates.correctLast(p.endpoint, row, &t)
	return t, ok
}

// before returns an endpoint's last transition before a time, with its recorded time.
func (p *past) before(row []byte, end uint64) (_ health.Transition, recorded uint64, _ bool) {
	if c := p.courses[string(row)]; c != nil {
		recorded, ok := c.before(end)
		if !ok {
			return health.Transition{}, 0, false
		}
		k := key(recorded)
		if t, ok := p.dates.open(k, p.rows.Get(k), p.shared); ok {
			return t, recorded, true
		}
	}
	s := newSpan(p.endpoint, row, p.dates.search(0, end), true)
	for recorded, ok := s.next(); ok; recorded, ok = s.next() {
		k := key(recorded)
		t, ok := p.dates.open(k, p.rows.Get(k), p.shared)
		p.damage.unless(ok, transitions, k)
		if ok && nanos(t.Time) < end {
			return t, recorded, true
		}
	}
	return health.Transition{}, 0, false
}

// steps calls f for an endpoint's transitions in [start, end), oldest first, until f returns
// false.
func (p *past) steps(row []byte, start, end uint64, f func(step) bool) {
	if c := p.courses[string(row)]; c != nil {
		for _, s := range c.period(start, end) {
			if !f(s) {
				return
			}
		}
		return
	}
	s := newSpan(p.endpoint, row, p.dates.search(start, end), false)
	for recorded, ok := s.next(); ok; recorded, ok = s.next() {
		k := key(recorded)
		candidate, ok := openStep(k, p.rows.Get(k))
		p.damage.unless(ok, transitions, k)
		candidate.recorded = recorded
		candidate.time = p.dates.line.Shown(recorded, candidate.time)
		if ok && candidate.time >= start && candidate.time < end && !f(candidate) {
			return
		}
	}
}

func (p *past) asOf(e *health.Endpoint, instant uint64, began time.Time) health.Verdict {
	if instant < nanos(began) {
		return health.Verdict{Reason: fmt.Sprintf("the history began later, at %s", began.Format(time.RFC3339))}
	}
	row := rowOf(e)
	last, ok := p.latest(row)
	if !ok {
		return health.Verdict{Reason: "there was no verdict yet"}
	}
	if nanos(last.Time) <= instant {
		return verdict(&last)
	}
	t, recorded, ok := p.before(row, instant+1)
	missing := p.gapBehind(recorded, instant)
	if ok && missing == nil {
		return verdict(&t)
	}
	return p.fromNext(row, &last, instant, missing)
}

// gapBehind returns a gap that ends behind a recorded time and begins at instant or earlier, or
// nil.
func (p *past) gapBehind(recorded, instant uint64) *Gap {
	for i := range p.gaps {
		if g := &p.gaps[i]; g.to > recorded && nanos(g.Start) <= instant {
			return &g.Gap
		}
	}
	return nil
}

// gapBefore returns a gap that ends at instant or later and begins before a recorded time, or
// nil.
func (p *past) gapBefore(recorded, instant uint64) *Gap {
	for i := range p.gaps {
		if g := &p.gaps[i]; g.from < recorded && nanos(g.End) >= instant {
			return &g.Gap
		}
	}
	return nil
}

// next returns the endpoint's first recorded transition dated start or later.
func (p *past) next(row []byte, start uint64) (first step, ok bool) {
	if c := p.courses[string(row)]; c != nil {
		return c.next(start)
	}
	p.steps(row, start, 1<<63, func(s step) bool {
		first, ok = s, true
		return false
	})
	return first, ok
}

// fromNext derives the verdict at instant from the next transition: the one before is not kept,
// or a gap follows it.
func (p *past) fromNext(row []byte, last *health.Transition, instant uint64, missing *Gap) health.Verdict {
	status, recorded := last.From, uint64(math.MaxUint64)
	if next, ok := p.next(row, instant+1); ok {
		status, recorded = next.from, next.recorded
	}
	switch earlier := p.gapBefore(recorded, instant); {
	case earlier != nil:
		return health.Verdict{Reason: "not known: " + earlier.String()}
	case status == health.Unknown && p.isMove(row, recorded):
		return health.Verdict{Reason: "it was in another locality"}
	case status == health.Unknown:
		return health.Verdict{Reason: "there was no verdict yet"}
	case missing != nil:
		return health.Verdict{Status: status, Reason: "the transition to it is missing: " + missing.String()}
	}
	return health.Verdict{Status: status, Reason: "the transition to it is older than the history that is kept"}
}
