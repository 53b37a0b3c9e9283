package xds

import (
	"fmt"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// put accepts a candidate.
func (t *table) put(c *candidate, version string, now time.Time) {
	e := c.entry
	if e == nil && c.wrong != "" && len(t.entries)-t.stock.has.clusters >= maxRefused {
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
			t.touch(e)
		}
	}()
	e.gone, e.lapsed, e.report = false, false, ""
	if c.wrong != "" {
		t.setRefusal(e, &refusal{version: reasonOr(c.version, version), reason: c.wrong, packed: c.body, at: now})
		return
	}
	t.setRefusal(e, nil)
	e.expires = time.Time{}
	if c.content != nil {
		t.use(e, c.content)
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
func (t *table) recordError(e *discoveryv3.ResourceError) {
	name, code := e.GetResourceName().GetName(), status.FromProto(e.GetErrorDetail()).Code()
	if code == codes.NotFound {
		t.remove(name)
	} else if known := t.entries[name]; known != nil {
		known.report = clip(fmt.Sprintf("%s: %s", code, e.GetErrorDetail().GetMessage()), maxOneReason)
		t.touch(known)
	}
}

// forget takes a resource out of use.
func (t *table) forget(e *entry) {
	t.use(e, nil)
	e.expires = time.Time{}
	t.resubscribe(e, time.Time{})
	if t.wildcard() && e.refused == nil {
		delete(t.entries, e.name)
		t.change++
	}
	t.touch(e)
}

// expire forgets the resources whose TTL is over.
func (t *table) expire(now time.Time) (expired []string) {
	for _, e := range t.open {
		if e.expires.IsZero() || e.expires.After(now) {
			continue
		}
		expired = append(expired, e.name)
		t.forget(e)
		if !t.wildcard() {
			// A server that sends heartbeats only must send the whole resource again.
			t.asked++
			t.change++
			e.serial, e.asked, e.lapsed = t.asked, now, true
		}
	}
	slices.Sort(expired)
	return expired
}
