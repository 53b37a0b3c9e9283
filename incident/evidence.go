package incident

import (
	"slices"
	"time"

	"hdsd/health"
)

// maxRecent bounds the events remembered for incidents that begin after them.
const maxRecent = 1000

// Event is a finding about observers that may be the cause of an incident near it.
type Event struct {
	Time    time.Time
	Checker string          // the doubted checker; empty: a path was
	To      health.Locality // end of the path
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

// blames reports whether at least half of the checkers that voted an endpoint down were doubted.
func (v *evidence) blames(votes []health.Observation) bool {
	voters, doubted := 0, 0
	for i := range votes {
		if o := &votes[i]; isDown(o.Status) && o.Disbelieved == "" {
			voters++
			if v.doubted[o.Checker] {
				doubted++
			}
		}
	}
	return doubted > 0 && 2*doubted >= voters
}

// Note adds an event. It counts for incidents that began at most a minute before or after it.
// Events may come in any order, before and after the transitions near them, and more than once.
func (l *Log) Note(e *Event) {
	first, _ := slices.BinarySearchFunc(l.incidents, e.Time.Add(-apart), func(n *incident, t time.Time) int { return n.start.Compare(t) })
	for _, n := range l.incidents[first:] {
		if n.start.Sub(e.Time) > apart {
			break
		}
		n.evidence.add(e)
	}
	if slices.Contains(l.recent, *e) {
		return
	}
	if l.recent = append(l.recent, *e); len(l.recent) > 2*maxRecent {
		l.recent = slices.Delete(l.recent, 0, maxRecent)
	}
}

// evidenceAt returns the events so far near a time.
func (l *Log) evidenceAt(t time.Time) (found evidence) {
	for i := range l.recent {
		if e := &l.recent[i]; t.Sub(e.Time).Abs() <= apart {
			found.add(e)
		}
	}
	return found
}
