package incident

import (
	"slices"
	"time"

	"hdsd/health"
)

// maxRecent is how many events are remembered for incidents that begin after them.
const maxRecent = 1000

// Event is a finding about observers that may be the cause of an incident near it.
type Event struct {
	Time    time.Time
	Checker string          // that was doubted; empty: a path was
	To      health.Locality // to which the path leads
}

// evidence is the events near an incident's beginning.
type evidence struct {
	doubted map[string]bool
	cut     map[zone]bool
}

func (v *evidence) add(e *Event) {
	switch {
	case e.Checker != "":
		if v.doubted == nil {
			v.doubted = map[string]bool{}
		}
		v.doubted[e.Checker] = true
	case e.To.Zone != "":
		if v.cut == nil {
			v.cut = map[zone]bool{}
		}
		v.cut[zone{e.To.Region, e.To.Zone}] = true
	}
}

// cutTo reports whether a path to a zone was doubted.
func (v *evidence) cutTo(l health.Locality) bool { return v.cut[zone{l.Region, l.Zone}] }

// blames reports whether at least half of those who said that an endpoint is down were
// doubted.
func (v *evidence) blames(votes []health.Observation) bool {
	said, doubted := 0, 0
	for i := range votes {
		if o := &votes[i]; isDown(o.Status) && o.Disbelieved == "" {
			said++
			if v.doubted[o.Checker] {
				doubted++
			}
		}
	}
	return doubted > 0 && 2*doubted >= said
}

// Note takes an event. It counts for incidents that began at most a minute before or after
// it. Events may come in any order, before and after the transitions near them, and more
// than once.
func (l *Log) Note(e *Event) {
	first, _ := slices.BinarySearchFunc(l.all, e.Time.Add(-apart), func(n *incident, at time.Time) int { return n.start.Compare(at) })
	for _, n := range l.all[first:] {
		if n.start.Sub(e.Time) > apart {
			break
		}
		n.near.add(e)
	}
	if slices.Contains(l.recent, *e) {
		return
	}
	if l.recent = append(l.recent, *e); len(l.recent) > 2*maxRecent {
		l.recent = slices.Delete(l.recent, 0, maxRecent)
	}
}

// evidenceAt returns the events so far that are near a time.
func (l *Log) evidenceAt(at time.Time) (near evidence) {
	for i := range l.recent {
		if e := &l.recent[i]; at.Sub(e.Time).Abs() <= apart {
			near.add(e)
		}
	}
	return near
}
