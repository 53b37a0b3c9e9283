package xds

import (
	"fmt"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/source"
)

// put accepts a candidate.
func (t *table) put(c *candidate, version string, now time.Time) {
	e := c.entry
	if e == nil && c.wrong != "" && len(t.entries)-t.stock.current.clusters >= maxRefused {
		return // the rejection counts it
	}
	if e == nil {
		e = &entry{name: c.name}
		t.entries[c.name] = e
		t.change++
	}
	before := e.gist()
	defer func() {
		if e.gist() != before { // in the state of the world, most are unchanged
			t.touched[e.name] = true
		}
		t.schedule(e)
	}()
	e.gone, e.lapsed, e.report, e.leaves = false, false, "", time.Time{}
	if c.wrong != "" {
		t.setRefusal(e, &refusal{version: reasonOr(c.version, version), reason: c.wrong, packed: c.body, time: now})
		return
	}
	t.setRefusal(e, nil)
	e.expires = time.Time{}
	if c.content != nil {
		t.use(e, c.content)
		e.stale, e.lease = false, time.Time{}
		if lease := c.content.decoded.lease; lease > 0 {
			e.lease = c.content.updated.Add(lease)
		}
		t.resubscribe(e, now)
	}
	if c.ttl > 0 {
		e.expires = now.Add(c.ttl)
	}
}

// dropRefused drops a refused resource as if the server had never sent it.
func (t *table) dropRefused(e *entry) {
	if e.refused != nil {
		t.remove(e.name)
		e.gone = false
		t.schedule(e)
	}
}

func (t *table) remove(name string) {
	if e := t.entries[name]; e != nil {
		e.gone, e.report = true, ""
		t.setRefusal(e, nil)
		t.forget(e)
	}
}

// recordError records the server's error for a resource. NOT_FOUND counts as a removal.
func (t *table) recordError(e *discoveryv3.ResourceError, now time.Time) {
	name, code := e.GetResourceName().GetName(), status.FromProto(e.GetErrorDetail()).Code()
	if code == codes.NotFound {
		t.withdraw(name, now)
	} else if entry := t.entries[name]; entry != nil {
		entry.report = clip(fmt.Sprintf("%s: %s", code, e.GetErrorDetail().GetMessage()), maxOneReason)
		t.touch(entry)
	}
}

// forget takes a resource out of use.
func (t *table) forget(e *entry) {
	t.use(e, nil)
	e.expires, e.lease, e.leaves, e.stale = time.Time{}, time.Time{}, time.Time{}, false
	t.resubscribe(e, time.Time{})
	if t.wildcard() && e.refused == nil {
		delete(t.entries, e.name)
		t.change++
	}
	t.touch(e)
}

// leaving is how long an assignment that the server removed stays, if clusters of the source use
// it. A server that removes a cluster removes its assignment as well, and the order is open if
// each type has its own stream.
const leaving = time.Second

// withdraw removes a resource at the server's request.
func (t *table) withdraw(name string, now time.Time) {
	if e := t.entries[name]; e != nil && !t.wildcard() && e.good != nil && t.covers(ownNames, e) {
		e.leaves = now.Add(leaving)
		t.touch(e)
		return
	}
	t.remove(name)
}

// expire forgets the resources whose TTL has ended and those that the server removed, removes
// the endpoints of assignments whose lease has ended, and ends waits. It returns the resources
// whose TTL, and those whose lease has ended.
func (t *table) expire(now time.Time) (expired, stale []string) {
	due := func(end time.Time) bool { return !end.IsZero() && !end.After(now) }
	for e := t.agenda.due(now); e != nil; e = t.agenda.due(now) {
		switch {
		case due(e.expires):
			expired = append(expired, e.name)
			t.lapse(e, now)
		case due(e.leaves):
			t.remove(e.name)
		case due(e.lease):
			stale = append(stale, e.name)
			t.empty(e)
		default:
			e.overdue = true
			t.touch(e)
		}
	}
	slices.Sort(expired)
	slices.Sort(stale)
	return expired, stale
}

// lapse takes a resource with an ended TTL out of use.
func (t *table) lapse(e *entry, now time.Time) {
	t.forget(e)
	if t.wildcard() {
		return
	}
	// A server that sends heartbeats only must send the whole resource again.
	t.subscription++
	t.change++
	e.serial, e.subscribedAt, e.lapsed, e.overdue = t.subscription, now, true, false
	t.schedule(e)
}

// empty removes the endpoints of an assignment whose lease has ended, as an Envoy does. Its
// version stays, so that the same one renews it.
func (t *table) empty(e *entry) {
	e.lease, e.stale = time.Time{}, true
	blank := *e.good
	blank.decoded = &decoded{lists: source.Ended(e.name)}
	t.use(e, &blank)
	t.touch(e)
}
