package incident

import (
	"slices"
	"time"

	"hdsd/health"
)

const (
	// apart is how far changes of one incident may be apart.
	apart = time.Minute

	// kept is how many incidents that are over are remembered.
	kept = 10_000
)

// Log is the incidents of a history. It is not safe for concurrent use.
type Log struct {
	all       []*incident // in the order of their beginning
	down      map[health.Endpoint]*incident
	byCluster map[string]*incident // the latest
	byZone    map[zone]*incident   // the latest
	recent    []Event
}

type zone struct{ region, zone string }

// NewLog makes an empty log.
func NewLog() *Log {
	return &Log{down: map[health.Endpoint]*incident{}, byCluster: map[string]*incident{}, byZone: map[zone]*incident{}}
}

// Add takes the next recorded transition, and its place in the history, which is larger than
// all before.
func (l *Log) Add(place uint64, t *health.Transition) {
	if t.Moved != nil {
		l.move(t)
		return
	}
	_, was := l.down[t.Endpoint]
	switch is := isDown(t.To); {
	case is && !was:
		n := l.find(place, t)
		l.down[t.Endpoint] = n
		n.fail(t)
	case was && !is:
		l.end(t.Endpoint, t.Time)
	}
}

// move keeps an endpoint of which only the locality changes in its incident.
func (l *Log) move(t *health.Transition) {
	from := t.Endpoint
	from.Locality = *t.Moved
	n := l.down[from]
	if t.To == health.Unknown || n == nil { // the first of two transitions, or it is not down
		return
	}
	delete(l.down, from)
	l.down[t.Endpoint] = n
	n.move(&from, &t.Endpoint)
}

func isDown(s health.Status) bool { return s == health.Unhealthy || s == health.Timeout }

// find returns the incident to which an endpoint belongs that goes down.
func (l *Log) find(place uint64, t *health.Transition) *incident {
	e, at := &t.Endpoint, t.Time
	in := zone{e.Locality.Region, e.Locality.Zone}
	n := l.byCluster[e.Cluster]
	if n == nil || at.Sub(n.parts[e.Cluster].last) > apart {
		if n = l.byZone[in]; in.zone == "" || n == nil || at.Sub(n.start) > apart {
			n = &incident{id: id(place), start: at, parts: map[string]*part{}, near: l.evidenceAt(at)}
			l.all = append(l.all, n)
			l.forget()
		}
	}
	l.byCluster[e.Cluster], l.byZone[in] = n, n
	return n
}

// end notes that an endpoint is no longer down.
func (l *Log) end(e health.Endpoint, at time.Time) {
	l.down[e].recover(&e, at)
	delete(l.down, e)
}

// forget drops the oldest incidents that are over.
func (l *Log) forget() {
	if len(l.all) < 2*kept {
		return
	}
	gone := map[*incident]bool{}
	excess := len(l.all) - kept
	l.all = slices.DeleteFunc(l.all, func(n *incident) bool {
		if excess == 0 || n.end.IsZero() {
			return false
		}
		excess--
		gone[n] = true
		return true
	})
	for k, n := range l.byCluster {
		if gone[n] {
			delete(l.byCluster, k)
		}
	}
	for k, n := range l.byZone {
		if gone[n] {
			delete(l.byZone, k)
		}
	}
}

// Stale lists the endpoints that have been down since before a time.
func (l *Log) Stale(before time.Time) (found []health.Endpoint) {
	for e, n := range l.down {
		if n.parts[e.Cluster].last.Before(before) {
			found = append(found, e)
		}
	}
	return found
}

// Gone notes that endpoints are no longer down although no transition says so: no source
// has them any more, or the history has a gap.
func (l *Log) Gone(endpoints []health.Endpoint, at time.Time) {
	for _, e := range endpoints {
		if l.down[e] != nil {
			l.end(e, at)
		}
	}
}

// Query narrows a list of incidents; zero fields do not.
type Query struct {
	Cluster    string
	ID         string
	Start, End time.Time // incidents that went on at some time in this period
	Open       *bool     // whether they still go on
	Limit      int
	After      *Position                 // the last one of the page before
	May        func(cluster string) bool // which clusters the caller may see
}

// Position is that of an incident in a list.
type Position struct {
	Start time.Time
	ID    string
}

// List returns incidents, those that began last first, and whether there are more.
func (l *Log) List(q Query) (found []Incident, more bool) {
	for _, n := range l.all {
		if q.Cluster != "" && n.parts[q.Cluster] == nil || q.ID != "" && q.ID != n.id {
			continue
		}
		if i, ok := n.seen(q.May); ok && q.wants(&i) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b Incident) int { return newestFirst(&a, &b) })
	if q.After != nil {
		last := &Incident{Start: q.After.Start, ID: q.After.ID}
		first, _ := slices.BinarySearchFunc(found, last, func(a Incident, b *Incident) int { return newestFirst(&a, b) })
		for first < len(found) && newestFirst(&found[first], last) <= 0 {
			first++
		}
		found = found[first:]
	}
	if q.Limit > 0 && len(found) > q.Limit {
		return found[:q.Limit], true
	}
	return found, false
}

func (q *Query) wants(i *Incident) bool {
	open := i.End.IsZero()
	if q.Open != nil && *q.Open != open {
		return false
	}
	return (open || q.Start.IsZero() || !i.End.Before(q.Start)) && (q.End.IsZero() || i.Start.Before(q.End))
}
