package poll

import "time"

// entry is what the tracker keeps of a poll.
type entry struct {
	Poll
	client *client
	index  int // in client.polls
	size   int

	accepted time.Time // when the client accepted Poll.Accepted
	checked  time.Time // when Due gave it last
}

// record takes in what a client says in a fetch, and what it is given.
func (e *entry) record(t *Tracker, f *Fetch, now time.Time) {
	e.Time, e.Held, e.Choice = now, f.Held, f.Choice
	if e.Accepted != nil && e.Accepted.Version != e.Held {
		t.release(e.Accepted)
		e.Accepted = nil
	}
	if f.Refusal != nil {
		e.refuse(t, f.Refusal, now)
	} else if e.Given != nil && e.Given.Version == e.Held {
		e.accept(t, e.Given, now)
	}
	answer := t.answer(f)
	switch {
	case f.Refusal == nil && answer.Version == e.Held: // the client has it from elsewhere, or from before
		e.give(t, answer)
		e.accept(t, answer, now)
	case answer != e.Given || e.State == Accepted: // the client lost what it had
		e.give(t, answer)
		e.State, e.Sent = Outstanding, now
	default:
		t.release(answer)
	}
}

// give notes what the client is given.
func (e *entry) give(t *Tracker, a *Answer) {
	if e.Given != nil {
		t.release(e.Given)
	}
	if e.Given != a {
		e.Sent = time.Time{}
	}
	e.Given = a
}

func (e *entry) accept(t *Tracker, a *Answer, now time.Time) {
	if e.State != Accepted {
		e.LastAck = now
	}
	e.State = Accepted
	if e.Accepted == nil {
		e.Accepted, e.accepted = retain(a), now
	}
	e.setRefusal(t, nil)
}

// refuse notes a refusal, which is about the latest answer unless its nonce says
// otherwise.
func (e *entry) refuse(t *Tracker, nack *Nack, now time.Time) {
	e.LastError = nack.Text
	if e.Given == nil || nack.Nonce != "" && nack.Nonce != e.Given.Version {
		return
	}
	e.State = Refused
	e.setRefusal(t, &Refusal{Answer: retain(e.Given), Text: nack.Text, Time: now})
}

func (e *entry) setRefusal(t *Tracker, r *Refusal) {
	if e.Refusal != nil {
		t.release(e.Refusal.Answer)
	}
	e.Refusal = r
}

// release returns back every answer that the entry refers to.
func (e *entry) release(t *Tracker) {
	for _, a := range []*Answer{e.Given, e.Accepted} {
		if a != nil {
			t.release(a)
		}
	}
	e.setRefusal(t, nil)
}

// answer returns what is remembered of the answer to a fetch, retained once.
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
