package coordinator

import (
	"fmt"
	"time"

	"hdsd/health"
	"hdsd/store"
)

// override is one in force.
type override struct {
	store.Override
	endpoints int // that it decides
}

// ruling is what is above the votes on an endpoint.
type ruling struct {
	by    *override // nil: nothing any more, which is so since then
	since time.Time
}

// overrides are all that are in force.
type overrides struct {
	all      map[health.Endpoint]*override // by scope
	kinds    [scopeKinds]int               // how many there are
	expireAt time.Time                     // when the next one ends; zero: none does
}

// The kind of a scope says which parts it names. The larger is for less: an
// endpoint before a locality in a cluster, that before the cluster, and that
// before a locality everywhere; a zone before its region.
const (
	ofRegion = 1 << iota
	ofZone
	ofSubZone
	ofCluster
	ofAddress
	scopeKinds
)

// parts are those of a scope or of an endpoint, in the order of the kinds.
func parts(e *health.Endpoint) [5]*string {
	return [...]*string{&e.Locality.Region, &e.Locality.Zone, &e.Locality.SubZone, &e.Cluster, &e.Address}
}

func kindOf(scope *health.Endpoint) (kind int) {
	for i, part := range parts(scope) {
		if *part != "" {
			kind |= 1 << i
		}
	}
	return kind
}

// covers tells whether an endpoint, or another scope, is within a scope.
func covers(scope, e *health.Endpoint) bool {
	theirs := parts(e)
	for i, part := range parts(scope) {
		if *part != "" && *part != *theirs[i] {
			return false
		}
	}
	return true
}

// narrowed leaves of an endpoint what a kind of scope names.
func narrowed(e *health.Endpoint, kind int) (scope health.Endpoint) {
	theirs := parts(e)
	for i, part := range parts(&scope) {
		if kind&(1<<i) != 0 {
			*part = *theirs[i]
		}
	}
	return scope
}

// of gives the override that decides an endpoint, nil for none.
func (o *overrides) of(e health.Endpoint) *override {
	if len(o.all) == 0 {
		return nil
	}
	for kind := kindOf(&e); kind > 0; kind-- {
		if o.kinds[kind] == 0 || kind&kindOf(&e) != kind {
			continue
		}
		if found := o.all[narrowed(&e, kind)]; found != nil {
			return found
		}
	}
	return nil
}

// put has one in force, and gives the one that it replaces.
func (o *overrides) put(next *override) (before *override) {
	before = o.take(next.Scope)
	if o.all == nil {
		o.all = map[health.Endpoint]*override{}
	}
	o.all[next.Scope] = next
	o.kinds[kindOf(&next.Scope)]++
	if !next.Until.IsZero() && (o.expireAt.IsZero() || next.Until.Before(o.expireAt)) {
		o.expireAt = next.Until
	}
	return before
}

// take takes one out; nil where there is none. The time at which the next one
// ends may then be too early, which costs a look.
func (o *overrides) take(scope health.Endpoint) *override {
	before := o.all[scope]
	if before != nil {
		delete(o.all, scope)
		o.kinds[kindOf(&scope)]--
	}
	return before
}

// expired takes out what has come to its end.
func (o *overrides) expired(now time.Time) (gone []*override) {
	if o.expireAt.IsZero() || now.Before(o.expireAt) {
		return nil
	}
	o.expireAt = time.Time{}
	for scope, each := range o.all {
		switch until := each.Until; {
		case until.IsZero():
		case !now.Before(until):
			gone = append(gone, o.take(scope))
		case o.expireAt.IsZero() || until.Before(o.expireAt):
			o.expireAt = until
		}
	}
	return gone
}

// done names what an override does to an endpoint.
func (o *override) done() string {
	switch o.Status {
	case health.Draining:
		return "drained"
	case health.Healthy:
		return "forced healthy"
	default:
		return "forced unhealthy"
	}
}

// reason says why an endpoint's health is what it is, where that is an
// override.
func (o *override) reason() string {
	with := ""
	switch kind := kindOf(&o.Scope); {
	case kind&ofAddress != 0:
	case kind == ofCluster:
		with = " with its cluster"
	case kind&ofCluster != 0:
		with = " with its locality in the cluster"
	default:
		with = " with its locality"
	}
	text := fmt.Sprintf("%s%s by %s: %s", o.done(), with, o.Author, o.Reason)
	if !o.Until.IsZero() {
		text += fmt.Sprintf(" (until %s)", o.Until.UTC().Format(time.RFC3339))
	}
	return text
}
