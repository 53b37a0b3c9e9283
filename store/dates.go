package store

import (
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/store/timeline"
)

// dates knows the real times of one transaction's rows, and searches by them.
type dates struct {
	line   *timeline.Timeline
	skew   timeline.Skew
	ranges map[[2]uint64][]timeline.Range // of earlier searches: one query asks for many endpoints
	moves  *bolt.Bucket                   // nil if there are none
}

// dates returns those of a transaction.
func (t *timekeeper) dates(tx *bolt.Tx) *dates {
	return &dates{line: t.timeline(), skew: readSkew(tx), ranges: map[[2]uint64][]timeline.Range{}, moves: tx.Bucket(moves)}
}

// search returns the recorded ranges of transitions that happened in [start, end).
func (d *dates) search(start, end uint64) []timeline.Range {
	times := [2]uint64{start, end}
	found, ok := d.ranges[times]
	if !ok {
		found = d.line.Search(d.skew, start, end)
		d.ranges[times] = found
	}
	return found
}

// disordered reports whether the time of some transitions does not tell their place.
func (d *dates) disordered() bool { return d.line.Corrects() || d.skew.Any() }

// open reads a row of the history with its move, and corrects the time that a wrong clock gave.
func (d *dates) open(k, v []byte, shared names) (health.Transition, bool) {
	t, ok := openTransition(k, v, shared)
	if ok {
		setMoved(d.moves, number(k), &t)
		d.correct(number(k), &t)
	}
	return t, ok
}

// correct sets the real time of a transition, as far as known.
func (d *dates) correct(recorded uint64, t *health.Transition) {
	ownTime := nanos(t.Time)
	if corrected := d.line.Shown(recorded, ownTime); corrected != ownTime {
		redate(t, corrected)
	}
}

// correctLast corrects an endpoint's last transition while that is kept. row is the
// endpoint's key in the index.
func (d *dates) correctLast(index *bolt.Cursor, row []byte, t *health.Transition) {
	if !d.line.Corrects() {
		return
	}
	last := newSpan(index, row, []timeline.Range{{From: 0, To: math.MaxUint64}}, true)
	if recorded, ok := last.next(); ok {
		d.correct(recorded, t)
	}
}

// redate gives a transition another time, and its votes with it.
func redate(t *health.Transition, date uint64) {
	shift := timeOf(date).Sub(t.Time)
	t.Time, t.Observations = timeOf(date), slices.Clone(t.Observations)
	for i := range t.Observations {
		if o := &t.Observations[i]; !o.Time.IsZero() {
			o.Time = o.Time.Add(shift)
		}
	}
}
