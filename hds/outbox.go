package hds

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/envoy/specifier"
)

// outbox decides what to send in one session. It has no clock and does no I/O. It
// belongs to the goroutine that sends.
type outbox struct {
	grace time.Duration // time for which a disappearing cluster is kept without endpoints

	target  *specifier.Specifier // the specifier that the checker should have in the end
	last    *sentMessage         // nil before
	leaving map[string]*leaving
}

// leaving is a cluster that is emptied and not yet dropped.
type leaving struct {
	emptied *healthv3.ClusterHealthCheck
	dropAt  time.Time // zero: not sent yet
}

// setTarget sets the specifier that the checker should have in the end. Clusters that it should
// lose are emptied first.
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

// compose returns the due message, encoded; nil if the checker has it.
func (o *outbox) compose(now time.Time) ([]byte, error) {
	maps.DeleteFunc(o.leaving, func(_ string, l *leaving) bool { return !l.dropAt.IsZero() && !now.Before(l.dropAt) })
	next := &sentMessage{spec: o.target, time: now}
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

// delivered starts the time for which emptied clusters are kept. It returns the time when the
// next message is due; zero if none is.
func (o *outbox) delivered(now time.Time) time.Time {
	var due time.Time
	for _, l := range o.leaving {
		if l.dropAt.IsZero() {
			l.dropAt = now.Add(o.grace)
		}
		if due.IsZero() || l.dropAt.Before(due) {
			due = l.dropAt
		}
	}
	return due
}
