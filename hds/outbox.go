package hds

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/hds/specifier"
)

// outbox decides what to send in one session. It has no clock and does no I/O. It
// belongs to the goroutine that sends.
type outbox struct {
	grace time.Duration // how long a cluster that goes away is kept without endpoints

	target  *specifier.Specifier           // what the checker should end up with
	message *healthv3.HealthCheckSpecifier // the last one sent; nil before
	digest  [sha256.Size]byte              // of it
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
		for _, had := range o.target.Message.GetClusterHealthChecks() {
			o.leaving[had.GetClusterName()] = &leaving{emptied: emptied(had)}
		}
	}
	for _, has := range target.Message.GetClusterHealthChecks() {
		delete(o.leaving, has.GetClusterName())
	}
	o.target = target
}

// emptied gives a cluster without its localities, sharing all else.
func emptied(c *healthv3.ClusterHealthCheck) *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: c.GetClusterName(), HealthChecks: c.GetHealthChecks(),
		TransportSocketMatches: c.GetTransportSocketMatches(), UpstreamBindConfig: c.GetUpstreamBindConfig(),
	}
}

// compose gives the encoded message that is due; nil if the checker has it.
func (o *outbox) compose(now time.Time) ([]byte, error) {
	maps.DeleteFunc(o.leaving, func(_ string, l *leaving) bool { return !l.until.IsZero() && !now.Before(l.until) })
	m := o.target.Message
	if len(o.leaving) > 0 {
		m = &healthv3.HealthCheckSpecifier{Interval: m.GetInterval(), ClusterHealthChecks: slices.Clone(m.GetClusterHealthChecks())}
		for _, name := range slices.Sorted(maps.Keys(o.leaving)) {
			m.ClusterHealthChecks = append(m.ClusterHealthChecks, o.leaving[name].emptied)
		}
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding a specifier: %w", err)
	}
	digest := sha256.Sum256(encoded)
	if o.message != nil && digest == o.digest {
		return nil, nil
	}
	o.message, o.digest = m, digest
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
