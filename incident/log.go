package incident

import (
	"slices"
	"time"

	"hdsd/health"
)

const (
	// apart is the largest distance between changes of one incident.
	apart = time.Minute

	// kept is the number of ended incidents that are remembered.
	kept = 10_000
)

// Log is the incidents of a history. It is not safe for concurrent use.
type Log struct {
	incidents []*incident // in the order of their beginning
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

// Add adds the next recorded transition. Its place in the history is larger than all before.
func (l *Log) Add(place uint64, t *health.Transition) {
	if t.Moved != nil {
		l.move(t)
		return
	}
	_, wasDown := l.down[t.Endpoint]
	switch down := isDown(t.To); {
	case down && !wasDown:
		n := l.find(place, t)
		l.down[t.Endpoint] = n
		n.fail(t)
	case wasDown && !down:
		l.end(t.Endpoint, t.Time)
	}
}

// move keeps an endpoint that only changes its locality in its incident.
func (l *Log) move(t *health.Transition) {
	previous := t.Endpoint
	previous.Locality = *t.Moved
	n := l.down[previous]
	if t.To == health.Unknown || n == nil { // the first of two transitions, or it is not down
		return
	}
	delete(l.down, previous)
	l.down[t.Endpoint] = n
	n.move(&previous, &t.Endpoint)
}

func isDown(s health.Status) bool { return s == health.Unhealthy || s == health.Timeout }

// find returns the incident of an endpoint that goes down.
func (l *Log) find(place uint64, t *health.Transition) *incident {
	e, date := &t.Endpoint, t.Time
	z := zone{e.Locality.Region, e.Locality.Zone}
	n := l.byCluster[e.Cluster]
	if n == nil || date.Sub(n.parts[e.Cluster].last) > apart {
		if n = l.byZone[z]; z.zone == "" || n == nil || date.Sub(n.start) > apart {
			n = &incident{id: id(place), start: date, parts: map[string]*part{}, evidence: l.evidenceAt(date)}
			l.incidents = append(l.incidents, n)
			l.forget()
		}
	}
	l.byCluster[e.Cluster], l.byZone[z] = n, n
	return n
}

// end records that an endpoint is no longer down.
func (l *Log) end(e health.Endpoint, t time.Time) {
	l.down[e].recover(&e, t)
	delete(l.down, e)
}

// forget drops the oldest ended incidents.
func (l *Log) forget() {
	if len(l.incidents) < 2*kept {
		return
	}
	forgotten := map[*incident]bool{}
	excess := len(l.incidents) - kept
	l.incidents = slices.DeleteFunc(l.incidents, func(n *incident) bool {
		if excess == 0 || n.end.IsZero() {
			return false
		}
		excess--
		forgotten[n] = true
		return true
	})
	for k, n := range l.byCluster {
		if forgotten[n] {
			delete(l.byCluster, k)
		}
	}
	for k, n := range l.byZone {
		if forgotten[n] {
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

// Remove ends the outage of endpoints without a transition: no source has them any more, or the
// history has a gap.
func (l *Log) Remove(endpoints []health.Endpoint, t time.Time) {
	for _, e := range endpoints {
		if l.down[e] != nil {
			l.end(e, t)
		}
	}
}

// Query narrows a list of incidents; zero fields do not.
type Query struct {
	Cluster    string
	Versions   []string // all names of Cluster, itself included; nil: only that
	ID         string
	Start, End time.Time // incidents that overlap this period
	Open       *bool     // whether they still last; nil: both
	Limit      int
	After      *Position                 // the last one of the previous page
	Visible    func(cluster string) bool // whether the caller may see a cluster; nil: all
	Version    func(name string) string  // version of a cluster that a name stands for; nil: all names are of clusters
}

func (q *Query) versionOf(name string) string {
	if q.Version == nil {
		return ""
	}
	return q.Version(name)
}

// Position is the place of an incident in a list.
type Position struct {
	Start time.Time
	ID    string
}

// List returns incidents, newest first, and whether more follow.
func (l *Log) List(q Query) (found []Incident, more bool) {
	for _, n := range l.incidents {
		if q.Cluster != "" && !n.isIn(q.Cluster, q.Versions) || q.ID != "" && q.ID != n.id {
			continue
		}
		if i, ok := n.visible(&q); ok && q.wants(&i) {
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

// isIn reports whether an incident has a part in one of some clusters.
func (n *incident) isIn(cluster string, versions []string) bool {
	return n.parts[cluster] != nil || slices.ContainsFunc(versions, func(name string) bool { return n.parts[name] != nil })
}

func (q *Query) wants(i *Incident) bool {
	open := i.End.IsZero()
	if q.Open != nil && *q.Open != open {
		return false
	}
	return (open || q.Start.IsZero() || !i.End.Before(q.Start)) && (q.End.IsZero() || i.Start.Before(q.End))
}
