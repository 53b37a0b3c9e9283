package store

import (
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
	"hdsd/store/timeline"
)

// dates knows when the transitions that one transaction shows happened, and finds them
// by that.
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

// search returns the ranges with the transitions that happened from start on and before
// end.
func (d *dates) search(start, end uint64) []timeline.Range {
	times := [2]uint64{start, end}
	found, ok := d.ranges[times]
	if !ok {
		found = d.line.Search(d.skew, start, end)
		d.ranges[times] = found
	}
	return found
}

// disordered reports whether some transitions have a time that does not tell where they are.
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

// correct sets the time of a transition to when it happened, as far as is known.
func (d *dates) correct(recorded uint64, of *health.Transition) {
	own := nanos(of.Time)
	if at := d.line.Shown(recorded, own); at != own {
		redate(of, at)
	}
}

// correctLast corrects an endpoint's last transition while that is kept. row is the
// endpoint's key in the index.
func (d *dates) correctLast(index *bolt.Cursor, row []byte, of *health.Transition) {
	if !d.line.Corrects() {
		return
	}
	last := newSpan(index, row, []timeline.Range{{From: 0, To: math.MaxUint64}}, true)
	if recorded, ok := last.next(); ok {
		d.correct(recorded, of)
	}
}

// redate gives a transition another time, and its votes with it.
func redate(t *health.Transition, to uint64) {
	by := timeOf(to).Sub(t.Time)
	t.Time, t.Observations = timeOf(to), slices.Clone(t.Observations)
	for i := range t.Observations {
		if o := &t.Observations[i]; !o.Time.IsZero() {
			o.Time = o.Time.Add(by)
		}
	}
}
