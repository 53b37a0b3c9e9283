package poll

import "time"

// entry is what the tracker keeps of a poll.
type entry struct {
	Poll
	client *client
	index  int // in client.polls
	size   int
}

// record adds a fetch, and its answer.
func (e *entry) record(t *Tracker, f *Fetch, now time.Time) {
	e.Time, e.Held, e.Choice = now, f.Held, f.Choice
	if e.Accepted != nil && e.Accepted.Version != e.Held {
		t.release(e.Accepted)
		e.Accepted = nil
	}
	if f.Refusal != nil {
		e.refuse(t, f.Refusal, now)
	} else if e.Served != nil && e.Served.Version == e.Held {
		e.accept(t, e.Served, now)
	}
	answer := t.answer(f)
	switch {
	case f.Refusal == nil && answer.Version == e.Held: // the client has it from elsewhere, or from before
		e.give(t, answer)
		e.accept(t, answer, now)
	case answer != e.Served || e.State == Accepted: // the client lost its previous answer
		e.give(t, answer)
		e.State, e.Sent = Outstanding, now
	default:
		t.release(answer)
	}
}

// give records the answer to a fetch.
func (e *entry) give(t *Tracker, a *Answer) {
	if e.Served != nil {
		t.release(e.Served)
	}
	if e.Served != a {
		e.Sent = time.Time{}
	}
	e.Served = a
}

func (e *entry) accept(t *Tracker, a *Answer, now time.Time) {
	if e.State != Accepted {
		e.LastAck = now
	}
	e.State = Accepted
	if e.Accepted == nil {
		e.Accepted, e.AcceptTime = retain(a), now
	}
	e.setRefusal(t, nil)
}

// refuse records a refusal, of the latest answer unless its nonce names another.
func (e *entry) refuse(t *Tracker, nack *Nack, now time.Time) {
	e.LastError = nack.Text
	if e.Served == nil || nack.Nonce != "" && nack.Nonce != e.Served.Version {
		return
	}
	e.State = Refused
	e.setRefusal(t, &Refusal{Answer: retain(e.Served), Text: nack.Text, Time: now})
}

func (e *entry) setRefusal(t *Tracker, r *Refusal) {
	if e.Refusal != nil {
		t.release(e.Refusal.Answer)
	}
	e.Refusal = r
}

// release releases every answer of the entry.
func (e *entry) release(t *Tracker) {
	for _, a := range []*Answer{e.Served, e.Accepted} {
		if a != nil {
			t.release(a)
		}
	}
	e.setRefusal(t, nil)
}

// answer returns the remembered answer to a fetch, retained once.
func (t *Tracker) answer(f *Fetch) *Answer {
	key := answerKey{f.List, f.Version}
	a := t.answers[key]
	if a == nil {
		a = &Answer{List: f.List, Version: f.Version}
		a.Keys, a.Versions = f.Contents()
		t.answers[key] = a
		t.free -= a.cost()
	}
	return retain(a)
}

func retain(a *Answer) *Answer {
	a.refs++
	return a
}

func (t *Tracker) release(a *Answer) {
	if a.refs--; a.refs == 0 {
		delete(t.answers, answerKey{a.List, a.Version})
		t.free += a.cost()
	}
}
