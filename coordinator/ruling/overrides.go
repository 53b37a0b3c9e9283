package ruling

import (
	"fmt"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/store"
)

// MaxOverrides bounds the number of overrides.
const MaxOverrides = 10_000

// Override is an override in force.
type Override struct {
	store.Override
	Endpoints int // number of endpoints that it decides
}

// overrides holds the overrides in force.
type overrides struct {
	all      map[health.Endpoint]*Override // by scope
	kinds    [scopeKinds]int               // number of overrides, by kind of scope
	expireAt time.Time                     // when the next one expires; zero: none does
}

// The kind of a scope says which parts it names. A more specific kind is a larger number.
// From the most specific: an endpoint, a locality in a cluster, a cluster, a locality in
// all clusters. A zone is more specific than its region.
const (
	ofRegion = 1 << iota
	ofZone
	ofSubZone
	ofCluster
	ofAddress
	scopeKinds
)

// parts returns the parts of a scope or an endpoint, in the order of the kinds.
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

// covers reports whether an endpoint, or another scope, is within a scope.
func covers(scope, e *health.Endpoint) bool {
	theirs := parts(e)
	for i, part := range parts(scope) {
		if *part != "" && *part != *theirs[i] {
			return false
		}
	}
	return true
}

// coversIn reports whether an endpoint of a cluster is within a scope, which may name the
// cluster as hdsd does, or as others do.
func coversIn(k *catalog.Cluster, scope *health.Endpoint, e health.Endpoint) bool {
	if covers(scope, &e) {
		return true
	}
	e.Cluster = k.Source.Outside()
	return covers(scope, &e)
}

// narrow returns the scope of a kind that covers an endpoint.
func narrow(e *health.Endpoint, kind int) (scope health.Endpoint) {
	theirs := parts(e)
	for i, part := range parts(&scope) {
		if kind&(1<<i) != 0 {
			*part = *theirs[i]
		}
	}
	return scope
}

// of returns the most specific override that covers an endpoint of a cluster, or nil. The
// override may name the cluster as hdsd does, or as others do: then it is for all versions.
func (o *overrides) of(k *catalog.Cluster, e health.Endpoint) *Override {
	found := o.named(e)
	if e.Cluster = k.Source.Outside(); len(o.all) > 0 && e.Cluster != k.Source.Name {
		if other := o.named(e); other != nil && (found == nil || kindOf(&found.Scope) < kindOf(&other.Scope)) {
			return other
		}
	}
	return found
}

// named returns the most specific override that covers an endpoint by its key, or nil.
func (o *overrides) named(e health.Endpoint) *Override {
	if len(o.all) == 0 {
		return nil
	}
	for kind := kindOf(&e); kind > 0; kind-- {
		if o.kinds[kind] == 0 || kind&kindOf(&e) != kind {
			continue
		}
		if found := o.all[narrow(&e, kind)]; found != nil {
			return found
		}
	}
	return nil
}

// put adds an override, and returns the one that it replaces, or nil.
func (o *overrides) put(next *Override) (replaced *Override) {
	replaced = o.take(next.Scope)
	if o.all == nil {
		o.all = map[health.Endpoint]*Override{}
	}
	o.all[next.Scope] = next
	o.kinds[kindOf(&next.Scope)]++
	if !next.Until.IsZero() && (o.expireAt.IsZero() || next.Until.Before(o.expireAt)) {
		o.expireAt = next.Until
	}
	return replaced
}

// take removes the override with exactly this scope, and returns it, or nil. expireAt may
// then be too early, which only costs a look.
func (o *overrides) take(scope health.Endpoint) *Override {
	found := o.all[scope]
	if found != nil {
		delete(o.all, scope)
		o.kinds[kindOf(&scope)]--
	}
	return found
}

// expire removes the overrides whose time is over, and returns them.
func (o *overrides) expire(now time.Time) (ended []*Override) {
	if o.expireAt.IsZero() || now.Before(o.expireAt) {
		return nil
	}
	o.expireAt = time.Time{}
	for scope, each := range o.all {
		switch until := each.Until; {
		case until.IsZero():
		case !now.Before(until):
			ended = append(ended, o.take(scope))
		case o.expireAt.IsZero() || until.Before(o.expireAt):
			o.expireAt = until
		}
	}
	return ended
}

// verb says what the override does to an endpoint.
func (o *Override) verb() string {
	switch o.Status {
	case health.Draining:
		return "drained"
	case health.Healthy:
		return "forced healthy"
	default:
		return "forced unhealthy"
	}
}

// says reports whether another override would change nothing but the time since when this
// one is in force.
func (o *Override) says(other *store.Override) bool {
	same := *other
	if same.Since = o.Since; same.Until.Equal(o.Until) {
		same.Until = o.Until
	}
	return o.Override == same
}

// Explain returns the reason that endpoints get which the override decides.
func (o *Override) Explain() string {
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
	text := fmt.Sprintf("%s%s by %s: %s", o.verb(), with, o.Author, o.Reason)
	if !o.Until.IsZero() {
		text += fmt.Sprintf(" (until %s)", o.Until.UTC().Format(time.RFC3339))
	}
	return text
}
