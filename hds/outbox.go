package hds

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/hds/specifier"
)

// outbox decides what to send in one session. It has no clock and does no I/O. It
// belongs to the goroutine that sends.
type outbox struct {
	grace time.Duration // how long a cluster that goes away is kept without endpoints

	target  *specifier.Specifier // what the checker should end up with
	last    *sent                // nil before
	leaving map[string]*leaving
}

// leaving is a cluster that is emptied and not yet dropped.
type leaving struct {
	emptied *healthv3.ClusterHealthCheck
	until   time.Time // zero: not sent yet
}

// setTarget sets what the checker should end up with. Clusters that it had and
// should lose are emptied first.
func (o *outbox) setTarget(target *specifier.Specifier) {
	if o.leaving == nil {
		o.leaving = make(map[string]*leaving)
	}
	if o.target != nil {
		for i := range o.target.Clusters {
			emptied := o.target.Clusters[i].Empty()
			o.leaving[emptied.GetClusterName()] = &leaving{emptied: emptied}
		}
	}
	for i := range target.Clusters {
		delete(o.leaving, target.Clusters[i].Head.GetClusterName())
	}
	o.target = target
}

// compose gives the encoded message that is due; nil if the checker has it.
func (o *outbox) compose(now time.Time) ([]byte, error) {
	maps.DeleteFunc(o.leaving, func(_ string, l *leaving) bool { return !l.until.IsZero() && !now.Before(l.until) })
	next := &sent{of: o.target, at: now}
	for _, name := range slices.Sorted(maps.Keys(o.leaving)) {
		next.emptied = append(next.emptied, o.leaving[name].emptied)
	}
	encoded, err := next.encode()
	if err != nil {
		return nil, fmt.Errorf("encoding a specifier: %w", err)
	}
	next.digest = sha256.Sum256(encoded)
	if o.last != nil && next.digest == o.last.digest {
		return nil, nil
	}
	o.last = next
	return encoded, nil
}

// delivered starts the time for which emptied clusters are kept. It gives the time
// when the next message is due; zero if none is.
func (o *outbox) delivered(now time.Time) time.Time {
	var due time.Time
	for _, l := range o.leaving {
		if l.until.IsZero() {
			l.until = now.Add(o.grace)
		}
		if due.IsZero() || l.until.Before(due) {
			due = l.until
		}
	}
	return due
}
