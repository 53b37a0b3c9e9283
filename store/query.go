package store

import (
	"bytes"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/store/timeline"
)

// history answers queries of committed data.
type history struct {
	db       *database
	time     *timekeeper
	clusters *clusterSet
	damage   *damage
	created  uint64 // start of the history; part of its tokens
}

const (
	defaultLimit = 1000
	largestLimit = 10_000
)

// mostRead bounds the transitions that a page with a filter reads: reading holds the database
// open.
const mostRead = 50_000

// Transitions returns a page and the token of the next page, empty on the last one. With a
// filter, a page that is not the last may be short or empty. A move is one transition between
// equal healths. Transitions are in the order of Append. The error is ErrBadToken if the token
// does not belong to this query.
func (h *history) Transitions(q Query) (found []health.Transition, next string, err error) {
	last, err := q.position()
	if err != nil {
		return nil, "", err
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, largestLimit)
	err = h.db.view(func(tx *bolt.Tx) error {
		found, next = h.page(tx, &q, last)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return found, next, nil
}

func (h *history) page(tx *bolt.Tx, q *Query, last uint64) (found []health.Transition, next string) {
	shared := names{}
	rows := tx.Bucket(transitions)
	dates := h.time.dates(tx)
	merged := merge{spans: spansOf(tx, q, dates.search(nanos(q.Start), q.end()), last), newest: q.NewestFirst}
	read, looked := 0, last
	for recorded, ok := merged.next(); ok; recorded, ok = merged.next() {
		k := key(recorded)
		t, ok := dates.open(k, rows.Get(k), shared)
		h.damage.unless(ok, transitions, k)
		if read++; read > mostRead && (!q.Filter.Any() || q.Checker != "") {
			return found, q.token(looked)
		}
		looked = recorded
		if !ok || !q.matches(&t) {
			continue
		}
		if len(found) == q.Limit {
			return found, q.token(last)
		}
		if t.Moved != nil {
			t.From = t.To
		}
		found, last = append(found, t), recorded
	}
	return found, ""
}

// openTransition reads a row of the history. v is nil if only an index has the row.
func openTransition(k, v []byte, shared names) (health.Transition, bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != 8 {
		return health.Transition{}, false
	}
	return decodeRecord(row, number(k), shared)
}

func (q *Query) matches(t *health.Transition) bool {
	shown := nanos(t.Time)
	return (t.Moved == nil || t.To != health.Unknown) && isOf(t.Endpoint.Cluster, q.Cluster, q.Versions) &&
		(q.Address == "" || q.Address == t.Endpoint.Address) &&
		q.Filter.Has(t.Endpoint.Locality, t.To) &&
		(q.Checker == "" || slices.ContainsFunc(t.Observations, func(o health.Observation) bool { return o.Checker == q.Checker })) &&
		shown >= nanos(q.Start) && shown < q.end()
}

// isOf reports whether a name is that of a cluster, or of a version of it. An empty cluster
// matches all.
func isOf(name, cluster string, versions []string) bool {
	return cluster == "" || cluster == name || slices.Contains(versions, name)
}

// names lists the names of the cluster; an empty one for all clusters.
func (q *Query) names() []string {
	if q.Versions != nil {
		return q.Versions
	}
	return []string{q.Cluster}
}

// end returns End in nanoseconds.
func (q *Query) end() uint64 {
	if q.End.IsZero() {
		return math.MaxUint64
	}
	return nanos(q.End)
}

// spansOf returns the index rows that may match: those of the endpoints of an address, those of
// a cluster, or all transitions. It omits those of earlier pages.
func spansOf(tx *bolt.Tx, q *Query, ranges []timeline.Range, last uint64) []*span {
	ranges = slices.Clone(ranges)
	for i := range ranges {
		switch {
		case last == 0:
		case q.NewestFirst:
			ranges[i].To = min(ranges[i].To, last)
		default:
			ranges[i].From = max(ranges[i].From, last+1)
		}
	}
	newSpan := func(bucket, prefix []byte) *span {
		return newSpan(tx.Bucket(bucket).Cursor(), prefix, ranges, q.NewestFirst)
	}
	switch {
	case q.Address != "":
		var spans []*span
		for _, endpoint := range endpointsOf(tx, q) {
			spans = append(spans, newSpan(byEndpoint, endpoint))
		}
		return spans
	case q.Cluster != "":
		var spans []*span
		for _, name := range q.names() {
			spans = append(spans, newSpan(byCluster, key(uint64(health.ClusterHash(name)))))
		}
		return spans
	default:
		return []*span{newSpan(transitions, nil)}
	}
}

// endpointsOf returns cluster hash and endpoint hash of each endpoint with the address, in all
// localities and clusters.
func endpointsOf(tx *bolt.Tx, q *Query) (endpoints [][]byte) {
	rows := tx.Bucket(addresses).Cursor()
	for _, name := range q.names() {
		prefix := addressKey(q.Address)
		if name != "" {
			prefix = addressKey(q.Address, uint64(health.ClusterHash(name)))
		}
		for k, _ := rows.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = rows.Next() {
			endpoints = append(endpoints, append([]byte(nil), k[8:]...))
		}
	}
	return endpoints
}
