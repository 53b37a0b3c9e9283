package ruling

import (
	"fmt"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
	"hdsd/internal/heap"
	"hdsd/publish"
)

// An endpoint's verdict may change burst times in a row, and then once in each refill. So an
// endpoint that goes down and comes back every 10 s never waits, nor one that does so five
// times at once: no outage, restart loop or rolling deployment is as fast for long. A waiting
// change is published after refill at the latest, be it a down or an up.
//
// A few endpoints that change more often harm no one: all endpoints together have spare changes
// beyond their own, and one more in each spareRefill.
const (
	burst  = 10
	refill = 5 * time.Second

	spare       = 1000
	spareRefill = 500 * time.Millisecond

	tenth           = 100 * time.Millisecond
	refillTime      = tenths(refill / tenth)
	spareRefillTime = tenths(spareRefill / tenth)
)

// tenths counts tenths of a second. It is small, since each row has one.
type tenths uint32

// Pacing bounds how often the verdict of an endpoint changes. Each row has a token bucket
// (row.refilled). Only an endpoint with a recently empty bucket takes more memory.
type Pacing struct {
	// Spare is the number of common changes of all endpoints beyond their own.
	Spare int

	base   time.Time // the first time
	now    tenths    // since base; never goes back
	spared tenths    // when all spare changes are refilled
	paced  map[health.EndpointID]*paced
	due    heap.Heap[*paced] // one entry for each in paced, the earliest due first
}

func newPacing() Pacing {
	return Pacing{Spare: spare, paced: map[health.EndpointID]*paced{}, due: heap.Heap[*paced]{
		Less: func(a, b *paced) bool { return a.due < b.due }, Moved: func(w *paced, index int) { w.queue = index },
	}}
}

// paced is an endpoint with a recently empty bucket. It is forgotten when the bucket is full.
type paced struct {
	waiting bool      // the latest change is not published yet
	omitted int       // number of omitted changes since the latest recorded one
	start   time.Time // start of the published verdict
	queue   int       // index in Pacing.due
	due     tenths    // when there is a token, or the bucket is full
	id      health.EndpointID
}

// advance sets the time.
func (p *Pacing) advance(now time.Time) {
	if p.base.IsZero() {
		p.base = now
	}
	p.now = max(p.now, tenths(max(0, now.Sub(p.base))/tenth))
}

func (p *Pacing) time(n tenths) time.Time { return p.base.Add(time.Duration(n) * tenth) }

// take takes a token from the bucket of a row, or else a spare one, if there is one.
func (p *Pacing) take(r *row) bool {
	return takeFrom(&r.refilled, p.now, burst, refillTime) || takeFrom(&p.spared, p.now, p.Spare, spareRefillTime)
}

// takeFrom takes a token from a bucket, if there is one. The bucket holds size tokens, gets one
// in each step, and is full again at the time full.
func takeFrom(full *tenths, now tenths, size int, step tenths) bool {
	if size <= 0 || *full > now+tenths(size-1)*step {
		return false
	}
	*full = max(*full, now) + step
	return true
}

// admit reports whether to publish and record a change now, with the number of earlier omitted
// changes. It also returns the number of newly omitted changes.
func (p *Pacing) admit(now time.Time, r *row, c *aggregate.Change) (passes bool, earlier, omitted int) {
	w := p.paced[c.Endpoint]
	if w == nil {
		if p.take(r) {
			return true, 0, 0
		}
		w = &paced{id: c.Endpoint, start: c.FromSince, due: p.now}
		p.paced[c.Endpoint] = w
		p.due.Push(w)
	}
	omitted = w.stop()
	switch {
	case c.To == r.status:
		omitted++ // it is back to the published verdict
	case p.take(r):
		passes, w.start = true, now
	default:
		w.waiting, w.due = true, r.refilled-(burst-1)*refillTime
		p.due.Fix(w.queue)
	}
	if r.override() == nil { // otherwise it would not be recorded anyway
		w.omitted += omitted
	} else {
		omitted = 0
	}
	if passes {
		earlier, w.omitted = w.omitted, 0
	}
	return passes, earlier, omitted
}

// stop ends the wait of a change, so the change is never published. It returns the number of
// omitted changes, 0 or 1.
func (w *paced) stop() int {
	waited := w.waiting
	if w.waiting = false; waited {
		return 1
	}
	return 0
}

// forget forgets an endpoint. It returns the number of its omitted changes, including a waiting
// one, and the number of waiting ones, 0 or 1.
func (p *Pacing) forget(id health.EndpointID) (earlier, omitted int) {
	w := p.paced[id]
	if w == nil {
		return 0, 0
	}
	p.due.Remove(w.queue)
	delete(p.paced, id)
	omitted = w.stop()
	return w.omitted + omitted, omitted
}

// deadline returns the earliest deadline.
func (p *Pacing) deadline() (time.Time, bool) {
	if len(p.due.Items) == 0 {
		return time.Time{}, false
	}
	return p.time(p.due.Items[0].due), true
}

// Release publishes and records changes that waited because the endpoint changed too often.
func (t *Table) Release(now time.Time) Effects {
	if len(t.due.Items) == 0 {
		return Effects{}
	}
	t.advance(now)
	var d Decision
	for len(t.due.Items) > 0 && t.due.Items[0].due <= t.now {
		w := t.due.Items[0]
		r := &t.rows.byID[w.id]
		switch {
		case w.waiting && t.take(r):
			omitted := w.omitted
			w.waiting, w.omitted, w.start = false, 0, now
			votes := t.verdict(w.id)
			t.changeVerdict(&d, now, w.id, &votes, omitted)
		case w.due >= r.refilled:
			omitted, _ := t.forget(w.id)
			t.summarize(&d, now, w.id, omitted)
			continue
		}
		w.due = r.refilled
		t.due.Fix(0)
	}
	var e Effects
	e.add(d)
	return e
}

// changeVerdict publishes and records a verdict of the votes. Under an override, it only stores
// it.
func (t *Table) changeVerdict(d *Decision, now time.Time, id health.EndpointID, verdict *health.Verdict, omitted int) {
	r := &t.rows.byID[id]
	status := r.status
	first := !r.judged
	t.rows.judge(r, verdict.Status, true)
	if first {
		t.judged(now, r)
	}
	if r.override() != nil {
		if d.Voted == nil {
			d.Voted = map[health.Hash]*health.Verdict{}
		}
		d.Voted[r.hash] = &health.Verdict{Status: verdict.Status, Since: now}
		t.summarize(d, now, id, omitted)
		return
	}
	r.overlay = nil
	d.Health = append(d.Health, publish.Health{ID: id, Status: t.publishing.health(r)})
	d.Transitions = append(d.Transitions, health.Transition{
		Time: now, Endpoint: r.key(), From: status, To: verdict.Status,
		Reason: verdict.Reason + moreText(omitted), Observations: verdict.Observations,
	})
}

// summarize records the number of omitted changes of an endpoint, as a transition from its
// health to the same.
func (t *Table) summarize(d *Decision, now time.Time, id health.EndpointID, omitted int) {
	if omitted == 0 {
		return
	}
	r := &t.rows.byID[id]
	unchanged := health.Transition{Time: now, Endpoint: r.key(), From: r.health(), To: r.health()}
	if o := r.override(); o != nil {
		unchanged.Reason = o.Explain()
	} else {
		votes := t.verdict(id)
		unchanged.Reason, unchanged.Observations = votes.Reason, votes.Observations
	}
	unchanged.Reason += moreText(omitted)
	d.Transitions = append(d.Transitions, unchanged)
}

// Votes returns the verdict of the votes on an endpoint as published and recorded, with its
// reason.
func (t *Table) Votes(id health.EndpointID) health.Verdict {
	v, w := t.verdict(id), t.paced[id]
	if w == nil {
		return v
	}
	if v.Since = w.start; w.waiting {
		v.Reason = fmt.Sprintf("it changes too often, so %s waits until %s UTC: %s",
			v.Status, t.time(w.due).UTC().Format(time.TimeOnly), v.Reason)
		v.Status = t.rows.byID[id].status
	}
	v.Reason += moreText(w.omitted)
	return v
}

// Paced returns the number of endpoints that recently changed too often.
func (p *Pacing) Paced() int { return len(p.paced) }

// moreText returns the number of omitted changes as text; empty if there are none.
func moreText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 more change was left out, since it changes too often"
	}
	return fmt.Sprintf("; %d more changes were left out, since it changes too often", n)
}
