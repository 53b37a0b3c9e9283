package recording

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
)

// kind is the kind of an item of the stream.
type kind byte

const (
	endMark kind = iota // followed by a Reason
	begun
	delivered
	answered
	tick
	connected
	disconnected
	reported
	streamEnded
	silenced
	followed
	setOverride
	clearOverrides
	freeze
	unfreeze
	setTrust
	clearTrust
	annotate
)

// event encodes an event. It leaves out the clusters of a Delivered, which the Writer encodes.
func (e *Encoder) event(event machine.Event) {
	o := &e.out
	switch v := event.(type) {
	case machine.Begun, machine.Answered, machine.Delivered:
	case machine.Tick:
		e.received(v.ReceivedUntil)
	case machine.Connected:
		e.checker(&v.Checker)
	case machine.Disconnected:
		e.name(v.Checker)
	case machine.Reported:
		e.name(v.Checker)
		o.uint(uint64(len(v.Votes)))
		for i := range v.Votes {
			vote := &v.Votes[i]
			o.uint(uint64(vote.Endpoint))
			o.byte(byte(vote.Status))
			o.uint(uint64(vote.HTTPStatusCode))
		}
	case machine.StreamEnded:
		e.name(v.Checker)
	case machine.Silenced:
		e.name(v.Checker)
		o.bool(v.Silent)
	case machine.Followed:
		e.name(v.Checker)
		o.uint(v.Specifier.Serial)
	case *machine.SetOverride:
		o.override(&v.Override)
	case *machine.ClearOverrides:
		o.endpoint(&v.Scope)
		o.bool(v.All)
		o.text(v.Author)
	case *machine.Freeze:
		o.text(v.Author)
		o.text(v.Reason)
		o.bool(v.Hold)
	case *machine.Unfreeze:
		o.text(v.Author)
	case *machine.SetTrust:
		e.name(v.Checker)
		o.trust(&v.Trust)
	case *machine.ClearTrust:
		e.name(v.Checker)
		o.text(v.Author)
	case *machine.Annotate:
		o.historyEvent(&v.Event)
	}
}

// kindOf returns the kind of an event. It panics for an event without a form; the tests have all events.
func kindOf(event machine.Event) kind {
	switch event.(type) {
	case machine.Begun:
		return begun
	case machine.Delivered:
		return delivered
	case machine.Answered:
		return answered
	case machine.Tick:
		return tick
	case machine.Connected:
		return connected
	case machine.Disconnected:
		return disconnected
	case machine.Reported:
		return reported
	case machine.StreamEnded:
		return streamEnded
	case machine.Silenced:
		return silenced
	case machine.Followed:
		return followed
	case *machine.SetOverride:
		return setOverride
	case *machine.ClearOverrides:
		return clearOverrides
	case *machine.Freeze:
		return freeze
	case *machine.Unfreeze:
		return unfreeze
	case *machine.SetTrust:
		return setTrust
	case *machine.ClearTrust:
		return clearTrust
	case *machine.Annotate:
		return annotate
	}
	panic(fmt.Sprintf("recording has no form for %T", event))
}

// event decodes an event.
func (r *Reader) event(k kind) machine.Event {
	in := &r.in
	switch k {
	case begun:
		return machine.Begun{}
	case delivered:
		return machine.Delivered{Delivery: r.delivery()}
	case answered:
		return machine.Answered{}
	case tick:
		return machine.Tick{ReceivedUntil: r.received()}
	case connected:
		return machine.Connected{Checker: r.checker()}
	case disconnected:
		return machine.Disconnected{Checker: r.name()}
	case reported:
		return r.report()
	case streamEnded:
		return machine.StreamEnded{Checker: r.name()}
	case silenced:
		return machine.Silenced{Checker: r.name(), Silent: in.bool()}
	case followed:
		return r.followed()
	case setOverride:
		return &machine.SetOverride{Override: in.override()}
	case clearOverrides:
		return &machine.ClearOverrides{Scope: in.endpoint(), All: in.bool(), Author: in.text()}
	case freeze:
		return &machine.Freeze{Author: in.text(), Reason: in.text(), Hold: in.bool()}
	case unfreeze:
		return &machine.Unfreeze{Author: in.text()}
	case setTrust:
		return &machine.SetTrust{Checker: r.name(), Trust: in.trust()}
	case clearTrust:
		return &machine.ClearTrust{Checker: r.name(), Author: in.text()}
	case annotate:
		return &machine.Annotate{Event: in.historyEvent()}
	}
	in.fail(errFormat)
	return nil
}

// report decodes a Reported.
func (r *Reader) report() machine.Event {
	in := &r.in
	report := machine.Reported{Checker: r.name()}
	in.each(func() {
		v := health.Vote{Endpoint: health.EndpointID(in.uint()), Status: in.status(), HTTPStatusCode: uint16(in.uint())}
		report.Votes = append(report.Votes, v)
	})
	return report
}

// followed decodes a Followed, and finds its specifier.
func (r *Reader) followed() machine.Event {
	checker, serial := r.name(), r.in.uint()
	if r.in.err != nil {
		return nil
	}
	s := r.FindSpecifier(checker, serial)
	if s == nil { // this replay has not made it
		s = &specifier.Specifier{Serial: serial}
	}
	return machine.Followed{Checker: checker, Specifier: s}
}

// name encodes a frequent name: once as text, then as a number.
func (e *Encoder) name(name string) {
	if number, ok := e.names[name]; ok {
		e.out.uint(number)
		return
	}
	e.out.uint(0)
	e.out.text(name)
	if len(e.names) < maxNames {
		e.names[strings.Clone(name)] = uint64(len(e.names) + 1)
	}
}

// maxNames limits the names with numbers.
const maxNames = 1 << 16

// name decodes a frequent name.
func (r *Reader) name() string {
	switch number := r.in.uint(); {
	case r.in.err != nil:
		return ""
	case number == 0:
		name := r.in.text()
		if len(r.names) < maxNames {
			r.names = append(r.names, name)
		}
		return name
	case number > uint64(len(r.names)):
		r.in.fail(errFormat)
		return ""
	default:
		return r.names[number-1]
	}
}

// These are the forms of the time of a Tick.
const (
	zeroTime byte = iota
	eventTime
	earlierTime
)

// received encodes the time of a Tick.
func (e *Encoder) received(until time.Time) {
	switch {
	case until.IsZero():
		e.out.byte(zeroTime)
	case until == e.now: //nolint:staticcheck // both readings count
		e.out.byte(eventTime)
	default:
		e.out.byte(earlierTime)
		e.out.time(until)
	}
}

// received decodes the time of a Tick.
func (r *Reader) received() time.Time {
	switch r.in.byte() {
	case zeroTime:
		return time.Time{}
	case eventTime:
		return r.now
	case earlierTime:
		return r.in.time()
	}
	r.in.fail(errFormat)
	return time.Time{}
}

func (e *Encoder) checker(k *health.Checker) {
	o := &e.out
	e.name(k.ID)
	o.locality(&k.Locality)
	o.text(k.Version)
	o.uint(uint64(len(k.Abilities)))
	for _, ability := range slices.Sorted(maps.Keys(k.Abilities)) {
		o.text(string(ability))
	}
	o.uint(uint64(len(k.Metadata)))
	for _, key := range slices.Sorted(maps.Keys(k.Metadata)) {
		o.text(key)
		o.text(k.Metadata[key])
	}
	o.text(k.Identity)
	o.float(k.Weight)
	o.float(k.MaxChecksPerSecond)
}

func (r *Reader) checker() health.Checker {
	in := &r.in
	k := health.Checker{ID: r.name(), Locality: in.locality(), Version: in.text()}
	in.each(func() {
		if k.Abilities == nil {
			k.Abilities = health.Abilities{}
		}
		k.Abilities[health.Ability(in.text())] = struct{}{}
	})
	in.each(func() {
		if k.Metadata == nil {
			k.Metadata = map[string]string{}
		}
		key := in.text()
		k.Metadata[key] = in.text()
	})
	k.Identity, k.Weight, k.MaxChecksPerSecond = in.text(), in.float(), in.float()
	return k
}

func (o *output) locality(l *health.Locality) {
	o.text(l.Region)
	o.text(l.Zone)
	o.text(l.SubZone)
}

func (in *input) locality() health.Locality {
	return health.Locality{Region: in.text(), Zone: in.text(), SubZone: in.text()}
}

func (o *output) endpoint(e *health.Endpoint) {
	o.text(e.Cluster)
	o.locality(&e.Locality)
	o.text(e.Address)
}

func (in *input) endpoint() health.Endpoint {
	return health.Endpoint{Cluster: in.text(), Locality: in.locality(), Address: in.text()}
}

func (in *input) status() health.Status {
	s := health.Status(in.byte())
	if !s.Valid() {
		in.fail(errFormat)
	}
	return s
}

func (o *output) override(v *log.Override) {
	o.endpoint(&v.Scope)
	o.byte(byte(v.Status))
	o.text(v.Reason)
	o.text(v.Author)
	o.time(v.Since)
	o.time(v.Until)
}

func (in *input) override() log.Override {
	return log.Override{Scope: in.endpoint(), Status: in.status(), Reason: in.text(), Author: in.text(), Since: in.time(), Until: in.time()}
}

func (o *output) trust(t *log.Trust) {
	o.byte(byte(t.Level))
	o.text(t.Reason)
	o.text(t.Author)
	o.time(t.Since)
}

func (in *input) trust() log.Trust {
	return log.Trust{Level: log.TrustLevel(in.byte()), Reason: in.text(), Author: in.text(), Since: in.time()}
}

func (o *output) historyEvent(e *log.Event) {
	o.time(e.Time)
	o.int(int64(e.Kind))
	o.endpoint(&health.Endpoint{Cluster: e.Cluster, Locality: e.Locality, Address: e.Address})
	o.text(e.Checker)
	o.text(e.Author)
	o.text(e.Identity)
	o.text(e.Text)
	o.bool(e.Whole)
}

func (in *input) historyEvent() log.Event {
	e := log.Event{Time: in.time(), Kind: log.EventKind(in.int())}
	k := in.endpoint()
	e.Cluster, e.Locality, e.Address = k.Cluster, k.Locality, k.Address
	e.Checker, e.Author, e.Identity, e.Text, e.Whole = in.text(), in.text(), in.text(), in.text(), in.bool()
	return e
}
