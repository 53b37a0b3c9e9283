package store

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Began returns since when the health of endpoints is known: since the history began, or
// as far back as transitions are kept.
func (h *history) Began() (began time.Time, err error) {
	err = h.db.view(func(tx *bolt.Tx) error {
		began = h.began(tx)
		return nil
	})
	return began, err
}

func (h *history) began(tx *bolt.Tx) time.Time {
	from := h.time.timeline().Begun(h.created, h.time.edge())
	if k, _ := tx.Bucket(transitions).Cursor().First(); len(k) == 8 {
		from = min(from, number(k))
	}
	return timeOf(from)
}

// Endpoints lists endpoints that have or had a verdict, in the order of Endpoint.Compare:
// up to limit, and those after one of them unless that is nil. An empty name matches any.
func (h *history) Endpoints(cluster, address string, after *health.Endpoint, limit int) (found []health.Endpoint, err error) {
	names := []string{cluster}
	if cluster == "" {
		names = h.known.sorted()
	}
	for _, name := range names {
		if after != nil && name < after.Cluster {
			continue
		}
		if found, err = h.endpoints(found, name, address, after); err != nil {
			return nil, err
		}
		if len(found) >= limit {
			return found[:limit], nil
		}
	}
	return found, nil
}

// endpoints appends those of one cluster.
func (h *history) endpoints(found []health.Endpoint, cluster, address string, after *health.Endpoint) ([]health.Endpoint, error) {
	before, shared := len(found), names{}
	err := h.db.view(func(tx *bolt.Tx) error {
		take := func(k, v []byte) {
			t, ok := openCurrent(k, v, shared)
			h.damage.unless(ok, current, k)
			if ok && t.Endpoint.Cluster == cluster && (address == "" || t.Endpoint.Address == address) &&
				(after == nil || t.Endpoint.Compare(*after) > 0) {
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

// AsOf returns the verdicts on endpoints at a time: those that the last transition at or
// before it led to.
func (h *history) AsOf(endpoints []health.Endpoint, at time.Time) (held []health.Verdict, err error) {
	held = make([]health.Verdict, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		began := h.began(tx)
		past := h.past(tx)
		for i := range endpoints {
			held[i] = past.asOf(&endpoints[i], nanos(at), began)
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
	shared   names
}

func (h *history) past(tx *bolt.Tx) *past {
	return &past{
		dates: h.time.dates(tx), damage: h.damage, shared: names{},
		rows: tx.Bucket(transitions), current: tx.Bucket(current), endpoint: tx.Bucket(byEndpoint).Cursor(),
	}
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

// before returns an endpoint's last transition before a time.
func (p *past) before(row []byte, end uint64) (health.Transition, bool) {
	s := newSpan(p.endpoint, row, p.dates.search(0, end), true)
	for recorded, ok := s.next(); ok; recorded, ok = s.next() {
		k := key(recorded)
		t, ok := p.dates.open(k, p.rows.Get(k), p.shared)
		p.damage.unless(ok, transitions, k)
		if ok && nanos(t.Time) < end {
			return t, true
		}
	}
	return health.Transition{}, false
}

// steps calls f for an endpoint's transitions from start on and before end, oldest first,
// until f returns false.
func (p *past) steps(row []byte, start, end uint64, f func(step) bool) {
	s := newSpan(p.endpoint, row, p.dates.search(start, end), false)
	for recorded, ok := s.next(); ok; recorded, ok = s.next() {
		k := key(recorded)
		taken, ok := openStep(k, p.rows.Get(k))
		p.damage.unless(ok, transitions, k)
		taken.at = p.dates.line.Shown(recorded, taken.at)
		if ok && taken.at >= start && taken.at < end && !f(taken) {
			return
		}
	}
}

func (p *past) asOf(e *health.Endpoint, at uint64, began time.Time) health.Verdict {
	if at < nanos(began) {
		return health.Verdict{Reason: fmt.Sprintf("the history began later, at %s", began.Format(time.RFC3339))}
	}
	row := rowOf(e)
	last, ok := p.latest(row)
	if !ok {
		return health.Verdict{Reason: "there was no verdict yet"}
	}
	if nanos(last.Time) <= at {
		return verdict(&last)
	}
	if t, ok := p.before(row, at+1); ok {
		return verdict(&t)
	}
	return p.edge(row, &last)
}

// edge returns the verdict before the first transition of an endpoint that is kept.
func (p *past) edge(row []byte, last *health.Transition) health.Verdict {
	before := last.From
	p.steps(row, 0, 1<<63, func(s step) bool {
		before = s.from
		return false
	})
	if before == health.Unknown {
		return health.Verdict{Reason: "there was no verdict yet"}
	}
	return health.Verdict{Status: before, Reason: "the transition to it is older than the history that is kept"}
}
