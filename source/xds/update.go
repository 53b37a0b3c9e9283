package xds

import (
	"fmt"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// update is a response of any form.
type update struct {
	version string // of the response
	items   []item
	full    bool   // missing resources do not exist any more
	first   bool   // in a delta stream: missing refused resources may not exist any more
	scope   scope  // of the request: resources outside it do not count as missing
	excess  string // the exceeded limit, so that it is not decoded; empty: none
	removed map[string]bool
	errors  []*discoveryv3.ResourceError
}

// item is a resource in a response.
type item struct {
	name    string // empty: unknown
	version string
	body    *anypb.Any    // nil: a heartbeat, or a mistake
	ttl     time.Duration // 0: none
	wrong   string        // its fault, if known already

	received time.Time // arrival of a resource in a snapshot; zero: now

	decoded *decoded // of the body, if read
}

// candidate is an item after inspection.
type candidate struct {
	item
	entry     *entry   // nil: a new one
	content   *content // nil: refused, or a heartbeat
	heartbeat bool
}

// previous returns the content in use under the name of a candidate; nil if none.
func (c *candidate) previous() *content {
	if c.entry == nil {
		return nil
	}
	return c.entry.good
}

// apply applies the valid part of an update, and returns the refused one. The last version of a
// refused resource stays.
func (t *table) apply(u *update, now time.Time) *rejection {
	if u.excess != "" {
		return &rejection{whole: u.excess}
	}
	r := &rejection{total: len(u.items)}
	candidates, beats := t.look(u, r, now)
	full := u.full && (len(u.items) == 0 || beats < len(u.items)) && !r.nameless
	t.fit(candidates, u.removed, full)
	r.name(candidates)
	if left := t.left(candidates, u.removed, full); left < t.minimum {
		return &rejection{whole: fmt.Sprintf("it would leave %d clusters, and envoy.config.validators.minimum_clusters_validator asks for %d", left, t.minimum)}
	}
	if full || u.first {
		t.forgetResolved(candidates)
	}
	for _, c := range candidates {
		t.put(c, u.version, now)
	}
	for name := range u.removed {
		if candidates[name] == nil {
			t.withdraw(name, now)
		}
	}
	for _, e := range u.errors {
		t.recordError(e, now)
	}
	if full {
		for name, e := range t.entries {
			if candidates[name] == nil {
				t.setRefusal(e, nil)
				t.forget(e)
			}
		}
	}
	if r.empty() {
		return nil
	}
	return r
}

// forgetResolved forgets resources that were never valid and are no longer refused. It runs
// before others take their place.
func (t *table) forgetResolved(candidates map[string]*candidate) {
	if !t.wildcard() {
		return
	}
	for name, e := range t.entries {
		if candidates[name] == nil && e.good == nil {
			t.setRefusal(e, nil)
			t.forget(e)
		}
	}
}

// look makes candidates of the subscribed items, and counts the heartbeats among them.
func (t *table) look(u *update, r *rejection, now time.Time) (candidates map[string]*candidate, beats int) {
	candidates = make(map[string]*candidate, len(u.items))
	for i := range u.items {
		c := &candidate{item: u.items[i]}
		if c.name == "" {
			c.name = rules.Name(c.body.GetValue())
		}
		c.entry = t.entries[c.name]
		switch {
		case c.name == "":
			r.add(fmt.Sprintf("resources[%d]", i), reasonOr(c.wrong, "it has no name"))
			r.nameless = true
			continue
		case !t.wildcard() && (c.entry == nil || t.subscribed(c.entry) && !t.covers(u.scope, c.entry)):
			continue // it is not subscribed
		case candidates[c.name] != nil:
			c.wrong = "its name is there more than once"
		case u.removed[c.name]:
			c.wrong = "it is there and removed at once"
		}
		candidates[c.name] = c
		t.examine(c, now)
		if c.heartbeat {
			beats++
		}
	}
	return candidates, beats
}

func reasonOr(reason, other string) string {
	if reason != "" {
		return reason
	}
	return other
}

// left returns the number of resources that an update would leave.
func (t *table) left(candidates map[string]*candidate, removed map[string]bool, full bool) int {
	if t.minimum == 0 {
		return 0
	}
	after := make(map[string]bool)
	for name, e := range t.entries {
		if e.good != nil && (!full || candidates[name] != nil) {
			after[name] = true
		}
	}
	for name, c := range candidates {
		if c.content != nil {
			after[name] = true
		}
	}
	for name := range removed {
		delete(after, name)
	}
	return len(after)
}
