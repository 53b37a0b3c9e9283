package ruling

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
)

// MaxOverrides bounds the number of overrides.
const MaxOverrides = 10_000

// Override is an override in force.
type Override struct {
	log.Override
	Endpoints int // number of endpoints that it decides
}

// overrides holds the overrides in force.
type overrides struct {
	byScope  map[health.Endpoint]*Override // by scope
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

// coversIn reports whether an endpoint of a cluster is within a scope, which may have hdsd's
// name for the cluster, or the outside one.
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

// find returns the most specific override that covers an endpoint of a cluster, or nil. An
// override with the cluster's outside name applies to all its versions.
func (o *overrides) find(k *catalog.Cluster, e health.Endpoint) *Override {
	found := o.named(e)
	if e.Cluster = k.Source.Outside(); len(o.byScope) > 0 && e.Cluster != k.Source.Name {
		if other := o.named(e); other != nil && (found == nil || kindOf(&found.Scope) < kindOf(&other.Scope)) {
			return other
		}
	}
	return found
}

// named returns the most specific override that covers an endpoint by its key, or nil.
func (o *overrides) named(e health.Endpoint) *Override {
	if len(o.byScope) == 0 {
		return nil
	}
	for kind := kindOf(&e); kind > 0; kind-- {
		if o.kinds[kind] == 0 || kind&kindOf(&e) != kind {
			continue
		}
		if found := o.byScope[narrow(&e, kind)]; found != nil {
			return found
		}
	}
	return nil
}

// put adds an override, and returns the replaced one, or nil.
func (o *overrides) put(added *Override) (replaced *Override) {
	replaced = o.remove(added.Scope)
	if o.byScope == nil {
		o.byScope = map[health.Endpoint]*Override{}
	}
	o.byScope[added.Scope] = added
	o.kinds[kindOf(&added.Scope)]++
	if !added.Until.IsZero() && (o.expireAt.IsZero() || added.Until.Before(o.expireAt)) {
		o.expireAt = added.Until
	}
	return replaced
}

// remove removes the override with exactly this scope, and returns it, or nil. expireAt may
// then be too early, which only costs a look.
func (o *overrides) remove(scope health.Endpoint) *Override {
	found := o.byScope[scope]
	if found != nil {
		delete(o.byScope, scope)
		o.kinds[kindOf(&scope)]--
	}
	return found
}

// expire removes and returns the overrides whose time is over.
func (o *overrides) expire(now time.Time) (ended []*Override) {
	if o.expireAt.IsZero() || now.Before(o.expireAt) {
		return nil
	}
	o.expireAt = time.Time{}
	for _, scope := range slices.SortedFunc(maps.Keys(o.byScope), health.Endpoint.Compare) {
		override := o.byScope[scope]
		switch expiry := override.Until; {
		case expiry.IsZero():
		case !now.Before(expiry):
			ended = append(ended, o.remove(scope))
		case o.expireAt.IsZero() || expiry.Before(o.expireAt):
			o.expireAt = expiry
		}
	}
	return ended
}

// verb returns the effect of the override on an endpoint, in words.
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

// says reports whether another override would change nothing but the start of this one.
func (o *Override) says(other *log.Override) bool {
	merged := *other
	if merged.Since = o.Since; merged.Until.Equal(o.Until) {
		merged.Until = o.Until
	}
	return o.Override == merged
}

// Explain returns the reason shown for the endpoints that the override decides.
func (o *Override) Explain() string {
	target := ""
	switch kind := kindOf(&o.Scope); {
	case kind&ofAddress != 0:
	case kind == ofCluster:
		target = " with its cluster"
	case kind&ofCluster != 0:
		target = " with its locality in the cluster"
	default:
		target = " with its locality"
	}
	text := fmt.Sprintf("%s%s by %s: %s", o.verb(), target, o.Author, o.Reason)
	if !o.Until.IsZero() {
		text += fmt.Sprintf(" (until %s)", o.Until.UTC().Format(time.RFC3339))
	}
	return text
}
