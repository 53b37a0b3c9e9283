package recording

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/store"
)

// kind says what comes next in the stream.
type kind byte

const (
	ends kind = iota // why the recording ends
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
)

// event encodes an event, but for the clusters of a Delivered.
func (e *Encoder) event(event machine.Event) {
	o := &e.out
	switch v := event.(type) {
	case machine.Begun, machine.Answered, machine.Delivered:
	case machine.Tick:
		e.heard(v.Heard)
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
	}
}

// kindOf returns the kind of an event. It panics for one that cannot be written down, which no test would
// let pass.
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
	}
	panic(fmt.Sprintf("recording has no form for %T", event))
}

// event decodes an event.
func (r *Reader) event(of kind) machine.Event {
	in := &r.in
	switch of {
	case begun:
		return machine.Begun{}
	case delivered:
		return machine.Delivered{Delivery: r.delivery()}
	case answered:
		return machine.Answered{}
	case tick:
		return machine.Tick{Heard: r.heard()}
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
	}
	in.fail(errFormat)
	return nil
}

func (r *Reader) report() machine.Event {
	in := &r.in
	report := machine.Reported{Checker: r.name()}
	in.each(func() {
		v := health.Vote{Endpoint: health.EndpointID(in.uint()), Status: in.status(), HTTPStatusCode: uint16(in.uint())}
		report.Votes = append(report.Votes, v)
	})
	return report
}

// followed finds the specifier of a Followed.
func (r *Reader) followed() machine.Event {
	checker, serial := r.name(), r.in.uint()
	if r.in.err != nil {
		return nil
	}
	s := r.Specifier(checker, serial)
	if s == nil { // it is nothing that this replay has made
		s = &specifier.Specifier{Serial: serial}
	}
	return machine.Followed{Checker: checker, Specifier: s}
}

// name encodes a name that comes again and again.
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

// maxNames is how many names have a number.
const maxNames = 1 << 16

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

// The forms of the time that a Tick has.
const (
	heardNothing byte = iota
	heardNow
	heardEarlier
)

func (e *Encoder) heard(at time.Time) {
	switch {
	case at.IsZero():
		e.out.byte(heardNothing)
	case at == e.now: //nolint:staticcheck // both readings count
		e.out.byte(heardNow)
	default:
		e.out.byte(heardEarlier)
		e.out.time(at)
	}
}

func (r *Reader) heard() time.Time {
	switch r.in.byte() {
	case heardNothing:
		return time.Time{}
	case heardNow:
		return r.now
	case heardEarlier:
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

func (o *output) override(v *store.Override) {
	o.endpoint(&v.Scope)
	o.byte(byte(v.Status))
	o.text(v.Reason)
	o.text(v.Author)
	o.time(v.Since)
	o.time(v.Until)
}

func (in *input) override() store.Override {
	return store.Override{Scope: in.endpoint(), Status: in.status(), Reason: in.text(), Author: in.text(), Since: in.time(), Until: in.time()}
}

func (o *output) trust(t *store.Trust) {
	o.byte(byte(t.Level))
	o.text(t.Reason)
	o.text(t.Author)
	o.time(t.Since)
}

func (in *input) trust() store.Trust {
	return store.Trust{Level: store.TrustLevel(in.byte()), Reason: in.text(), Author: in.text(), Since: in.time()}
}
