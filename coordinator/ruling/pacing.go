package ruling

import (
	"container/heap"
	"fmt"
	"time"

	"hdsd/aggregate"
	"hdsd/coordinator/decision"
	"hdsd/eds"
	"hdsd/health"
)

// An endpoint's verdict may change burst times in a row, and then once in each refill.
// So an endpoint that goes down and comes back every 10 s never waits, however long it
// does that, nor one that does so five times at once: no outage, restart loop or rolling
// deployment is as fast for long. A change that waits is published after refill at the
// latest, be it a down or an up.
//
// Few endpoints that change more often than that harm nobody: all endpoints have spare
// changes together beyond their own, and one more in each spareRefill.
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
// (row.refilled), and only an endpoint whose bucket was empty lately takes more memory.
type Pacing struct {
	// Spare is how many changes all endpoints have together beyond their own.
	Spare int

	table  *Table
	base   time.Time // the first moment
	now    tenths    // since base; never goes back
	spared tenths    // when all spare changes are there again
	paced  map[health.EndpointID]*paced
	due    dueHeap // one entry for each in paced
}

func newPacing(t *Table) *Pacing {
	return &Pacing{Spare: spare, table: t, paced: map[health.EndpointID]*paced{}}
}

// paced is an endpoint whose bucket was empty lately. It is forgotten when that is full.
type paced struct {
	waits bool      // the latest change is not published yet
	more  int       // changes since the latest recorded one that never will be
	since time.Time // of the published verdict
	queue int       // index in dueHeap
	due   tenths    // when there is a token, or the bucket is full
	id    health.EndpointID
}

// advance sets the time.
func (p *Pacing) advance(now time.Time) {
	if p.base.IsZero() {
		p.base = now
	}
	p.now = max(p.now, tenths(max(0, now.Sub(p.base))/tenth))
}

func (p *Pacing) time(at tenths) time.Time { return p.base.Add(time.Duration(at) * tenth) }

// take takes a token out of the bucket of a row, or else a spare one, if there is one.
func (p *Pacing) take(r *row) bool {
	return takeFrom(&r.refilled, p.now, burst, refillTime) || takeFrom(&p.spared, p.now, p.Spare, spareRefillTime)
}

// takeFrom takes a token out of a bucket of a size that is full again at a time, if there
// is one.
func takeFrom(full *tenths, now tenths, size int, each tenths) bool {
	if size <= 0 || *full > now+tenths(size-1)*each {
		return false
	}
	*full = max(*full, now) + each
	return true
}

// admit reports whether a change is published and recorded now, and how many were left out
// before it. It also returns how many are left out from now on.
func (p *Pacing) admit(now time.Time, r *row, c *aggregate.Change) (passes bool, more, left int) {
	w := p.paced[c.Endpoint]
	if w == nil {
		if p.take(r) {
			return true, 0, 0
		}
		w = &paced{id: c.Endpoint, since: c.FromSince, due: p.now}
		p.paced[c.Endpoint] = w
		heap.Push(&p.due, w)
	}
	left = w.stop()
	switch {
	case c.To == r.status:
		left++ // it is as it was
	case p.take(r):
		passes, w.since = true, now
	default:
		w.waits, w.due = true, r.refilled-(burst-1)*refillTime
		heap.Fix(&p.due, w.queue)
	}
	if r.override() == nil { // else it would not be recorded anyway
		w.more += left
	} else {
		left = 0
	}
	if passes {
		more, w.more = w.more, 0
	}
	return passes, more, left
}

// stop ends the wait of a change, and returns how many are left out by that.
func (w *paced) stop() int {
	waited := w.waits
	if w.waits = false; waited {
		return 1
	}
	return 0
}

// forget forgets an endpoint, and returns how many changes were left out before, and how
// many are by that.
func (p *Pacing) forget(id health.EndpointID) (more, left int) {
	w := p.paced[id]
	if w == nil {
		return 0, 0
	}
	heap.Remove(&p.due, w.queue)
	delete(p.paced, id)
	left = w.stop()
	return w.more + left, left
}

// next returns the earliest deadline.
func (p *Pacing) next() (time.Time, bool) {
	if len(p.due) == 0 {
		return time.Time{}, false
	}
	return p.time(p.due[0].due), true
}

// Release publishes and records changes that waited because the endpoint changed too often.
func (p *Pacing) Release(now time.Time) Effects {
	if len(p.due) == 0 {
		return Effects{}
	}
	p.advance(now)
	var d decision.Decision
	for len(p.due) > 0 && p.due[0].due <= p.now {
		w := p.due[0]
		r := &p.table.rows.all[w.id]
		switch {
		case w.waits && p.take(r):
			more := w.more
			w.waits, w.more, w.since = false, 0, now
			votes := p.table.verdict(w.id)
			p.turn(&d, now, w.id, &votes, more)
		case w.due >= r.refilled:
			more, _ := p.forget(w.id)
			p.summarize(&d, now, w.id, more)
			continue
		}
		w.due = r.refilled
		heap.Fix(&p.due, 0)
	}
	var e Effects
	e.add(d)
	return e
}

// turn publishes and records a verdict of the votes. Under an override, it is only stored.
func (p *Pacing) turn(d *decision.Decision, now time.Time, id health.EndpointID, to *health.Verdict, more int) {
	t := p.table
	r := &t.rows.all[id]
	from := r.status
	first := !r.judged
	t.rows.judge(r, to.Status, true)
	if first {
		t.judged(now, r)
	}
	if r.override() != nil {
		if d.Voted == nil {
			d.Voted = map[health.Hash]*health.Verdict{}
		}
		d.Voted[r.hash] = &health.Verdict{Status: to.Status, Since: now}
		p.summarize(d, now, id, more)
		return
	}
	r.overlay = nil
	d.Health = append(d.Health, eds.Health{ID: id, Status: t.publishing.health(r)})
	d.Transitions = append(d.Transitions, health.Transition{
		Time: now, Endpoint: r.key(), From: from, To: to.Status,
		Reason: to.Reason + moreText(more), Observations: to.Observations,
	})
}

// summarize records how many changes of an endpoint were left out, as a transition from
// its health to the same.
func (p *Pacing) summarize(d *decision.Decision, now time.Time, id health.EndpointID, more int) {
	if more == 0 {
		return
	}
	r := &p.table.rows.all[id]
	same := health.Transition{Time: now, Endpoint: r.key(), From: r.health(), To: r.health()}
	if o := r.override(); o != nil {
		same.Reason = o.Explain()
	} else {
		votes := p.table.verdict(id)
		same.Reason, same.Observations = votes.Reason, votes.Observations
	}
	same.Reason += moreText(more)
	d.Transitions = append(d.Transitions, same)
}

// Votes returns the verdict of the votes on an endpoint as it is published and recorded,
// with its reason.
func (p *Pacing) Votes(id health.EndpointID) health.Verdict {
	v, w := p.table.verdict(id), p.paced[id]
	if w == nil {
		return v
	}
	if v.Since = w.since; w.waits {
		v.Reason = fmt.Sprintf("it changes too often, so %s waits until %s UTC: %s",
			v.Status, p.time(w.due).UTC().Format(time.TimeOnly), v.Reason)
		v.Status = p.table.rows.all[id].status
	}
	v.Reason += moreText(w.more)
	return v
}

// Paced returns the number of endpoints that changed too often lately.
func (p *Pacing) Paced() int { return len(p.paced) }

// moreText says how many changes were left out; empty if none were.
func moreText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 more change was left out, since it changes too often"
	}
	return fmt.Sprintf("; %d more changes were left out, since it changes too often", n)
}

// dueHeap holds the next one due first.
type dueHeap []*paced

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].queue, h[j].queue = i, j
}
func (h *dueHeap) Push(x any) {
	w := x.(*paced)
	w.queue = len(*h)
	*h = append(*h, w)
}
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return w
}
