package batch

import (
	"math"

	"hdsd/health"
	"hdsd/log"
)

const (
	endTag      = 0         // ends an entry
	optionalTag = 1_000_000 // readers skip sections with this tag and greater ones that they do not know
)

// sections lists the parts of an entry by tag. An encoder adds nothing for an absent part. Tags stay
// for ever.
var sections = []struct {
	encode func(*encoder, *log.Entry)
	decode func(*decoder, *log.Entry)
}{
	endTag: {func(*encoder, *log.Entry) {}, nil},
	1:      {encodeFreezeChange, decodeFreezeChange},
	2:      {encodeHeld, decodeHeld},
	3:      {encodeOverrides, decodeOverrides},
	4:      {encodeTrustChange, decodeTrustChange},
	5:      {func(e *encoder, l *log.Entry) { e.names(l.Clusters) }, func(d *decoder, l *log.Entry) { l.Clusters = d.names() }},
	6:      {encodeVoted, decodeVoted},
	7:      {encodeTransitions, decodeTransitions},
	8:      {encodeUnvoted, func(d *decoder, l *log.Entry) { l.Unvoted = d.hashes() }},
	9:      {func(e *encoder, l *log.Entry) { e.names(l.TakenOver) }, func(d *decoder, l *log.Entry) { l.TakenOver = d.names() }},
	10:     {func(e *encoder, l *log.Entry) { e.names(l.GivenBack) }, func(d *decoder, l *log.Entry) { l.GivenBack = d.names() }},
	11:     {func(e *encoder, l *log.Entry) { e.names(l.Removed) }, func(d *decoder, l *log.Entry) { l.Removed = d.names() }},
	12:     {encodePlan, decodePlan},
	13:     {encodeEstablished, decodeEstablished},
	14:     {encodeTrials, decodeTrials},
	15:     {encodePenalties, decodePenalties},
	16:     {encodeOrder, decodeOrder},

	replacedTag: {encodeReplaced, decodeReplaced},
	eventsTag:   {encodeEvents, decodeEvents},
	operatorTag: {encodeOperator, decodeOperator},
}

// These are the tags of later parts.
const (
	replacedTag = iota + 17
	eventsTag
	operatorTag
)

func encodeFreezeChange(e *encoder, l *log.Entry) {
	if l.Freeze != nil {
		e.freeze(l.Freeze.Before)
		e.freeze(l.Freeze.After)
		e.text(l.Freeze.By)
	}
}

func decodeFreezeChange(d *decoder, l *log.Entry) {
	l.Freeze = &log.FreezeChange{Before: d.freeze(), After: d.freeze(), By: d.text()}
}

func encodeHeld(e *encoder, l *log.Entry) {
	if l.Held != nil {
		e.freeze(l.Held)
	}
}

func decodeHeld(d *decoder, l *log.Entry) {
	if l.Held = d.freeze(); l.Held == nil {
		d.Fail()
	}
}

// freeze encodes a freeze, or nil.
func (e *encoder) freeze(f *log.Freeze) {
	if e.bool(f != nil); f == nil {
		return
	}
	e.text(f.Reason)
	e.text(f.Author)
	e.time(f.Since)
	if e.bool(f.Held != nil); f.Held == nil {
		return
	}
	e.statuses(f.Held)
}

func (d *decoder) freeze() *log.Freeze {
	if !d.bool() {
		return nil
	}
	f := &log.Freeze{Reason: d.text(), Author: d.text(), Since: d.time()}
	if d.bool() {
		f.Held = d.statuses()
	}
	return f
}

func encodeOverrides(e *encoder, l *log.Entry) {
	if len(l.Overrides) == 0 {
		return
	}
	e.list(len(l.Overrides), overrideMemory)
	for i := range l.Overrides {
		c := &l.Overrides[i]
		e.override(&c.Override)
		e.byte(byte(c.Kind))
		e.text(c.By)
	}
}

func decodeOverrides(d *decoder, l *log.Entry) {
	l.Overrides = make([]log.OverrideChange, d.list(12, overrideMemory))
	for i := range l.Overrides {
		c := &l.Overrides[i]
		c.Override = d.override()
		if c.Kind = log.ChangeKind(d.Byte()); c.Kind > log.Expired {
			d.Fail()
		}
		c.By = d.text()
	}
}

func (e *encoder) override(o *log.Override) {
	e.endpoint(&o.Scope)
	e.byte(byte(o.Status))
	e.text(o.Reason)
	e.text(o.Author)
	e.time(o.Since)
	e.time(o.Until)
}

func (d *decoder) override() log.Override {
	return log.Override{Scope: d.endpoint(), Status: d.status(), Reason: d.text(), Author: d.text(), Since: d.time(), Until: d.time()}
}

// encodeReplaced encodes the overrides that others replace, with the places of these among the changes.
func encodeReplaced(e *encoder, l *log.Entry) {
	count := 0
	for i := range l.Overrides {
		if l.Overrides[i].Replaced != nil {
			count++
		}
	}
	if count == 0 {
		return
	}
	e.list(count, replacedMemory)
	for i := range l.Overrides {
		if replaced := l.Overrides[i].Replaced; replaced != nil {
			e.uint(uint64(i))
			e.override(replaced)
		}
	}
}

func decodeReplaced(d *decoder, l *log.Entry) {
	first := uint64(0)
	for range d.list(11, replacedMemory) {
		place, replaced := d.Uvarint(), d.override()
		if place < first || place >= uint64(len(l.Overrides)) {
			d.Fail()
			return
		}
		l.Overrides[place].Replaced, first = &replaced, place+1
	}
}

func encodeTrustChange(e *encoder, l *log.Entry) {
	if l.Trust != nil {
		e.text(l.Trust.Checker)
		e.trust(l.Trust.Before)
		e.trust(l.Trust.After)
		e.text(l.Trust.By)
	}
}

func decodeTrustChange(d *decoder, l *log.Entry) {
	l.Trust = &log.TrustChange{Checker: d.text(), Before: d.trust(), After: d.trust(), By: d.text()}
}

// trust encodes an operator's trust, or nil.
func (e *encoder) trust(t *log.Trust) {
	if e.bool(t != nil); t == nil {
		return
	}
	e.byte(byte(t.Level))
	e.text(t.Reason)
	e.text(t.Author)
	e.time(t.Since)
}

func (d *decoder) trust() *log.Trust {
	if !d.bool() {
		return nil
	}
	t := &log.Trust{Level: log.TrustLevel(d.Byte()), Reason: d.text(), Author: d.text(), Since: d.time()}
	if t.Level > log.Trusted {
		d.Fail()
	}
	return t
}

func encodeVoted(e *encoder, l *log.Entry) {
	encodeRows(e, l.Voted, verdictMemory, e.hash, func(v *health.Verdict) {
		e.byte(byte(v.Status))
		e.time(v.Since)
	})
}

func decodeVoted(d *decoder, l *log.Entry) {
	l.Voted = decodeRows(d, 9, verdictMemory, d.hash, func() health.Verdict { return health.Verdict{Status: d.status(), Since: d.time()} })
}

func encodeTransitions(e *encoder, l *log.Entry) {
	if len(l.Transitions) == 0 {
		return
	}
	observations := 0
	for i := range l.Transitions {
		observations += len(l.Transitions[i].Observations)
	}
	e.list(len(l.Transitions), transitionMemory)
	e.list(observations, observationMemory)
	for i := range l.Transitions {
		t := &l.Transitions[i]
		e.time(t.Time)
		e.endpoint(&t.Endpoint)
		e.byte(byte(t.From))
		e.byte(byte(t.To))
		e.text(t.Reason)
		if e.bool(t.Moved != nil); t.Moved != nil {
			e.locality(t.Moved)
		}
		e.uint(uint64(len(t.Observations)))
		for i := range t.Observations {
			o := &t.Observations[i]
			e.text(o.Checker)
			e.byte(byte(o.Status))
			e.uint(uint64(o.HTTPStatusCode))
			e.time(o.Time)
			e.text(o.Disbelieved)
		}
	}
}

func decodeTransitions(d *decoder, l *log.Entry) {
	l.Transitions = make([]health.Transition, d.list(11, transitionMemory))
	observations := make([]health.Observation, d.list(5, observationMemory)) // of all transitions
	for i := range l.Transitions {
		t := &l.Transitions[i]
		t.Time, t.Endpoint, t.From, t.To, t.Reason = d.time(), d.endpoint(), d.status(), d.status(), d.text()
		if d.bool() {
			moved := d.locality()
			t.Moved = &moved
		}
		count := d.Size(5)
		if count > len(observations) {
			d.Fail()
			return
		}
		if count > 0 {
			t.Observations, observations = observations[:count:count], observations[count:]
		}
		for i := range t.Observations {
			o := &t.Observations[i]
			o.Checker, o.Status = d.text(), d.status()
			code := d.Uvarint()
			if code > math.MaxUint16 {
				d.Fail()
			}
			o.HTTPStatusCode, o.Time, o.Disbelieved = uint16(code), d.time(), d.text()
		}
	}
	if len(observations) > 0 {
		d.Fail()
	}
}

func encodeUnvoted(e *encoder, l *log.Entry) {
	if len(l.Unvoted) > 0 {
		e.hashes(l.Unvoted)
	}
}
