package xds

import (
	"context"
	"time"

	"hdsd/peer/limit"
	"hdsd/source"
)

// deliveryPause is the minimum time between two deliveries. A single change is delivered at
// once.
const deliveryPause = 5 * time.Millisecond

// delivery hands sets on. The goroutine of Run owns it.
type delivery struct {
	*Source
	take   func(*source.Set)
	start  time.Time
	begun  bool // a set other than Unread was delivered, or could have been
	heard  bool // the server has answered about clusters and their endpoints
	last   *source.Set
	forced bool // deliver the set even if it is unchanged

	stalePace, expiredPace limit.Pace
}

func newDelivery(s *Source, take func(*source.Set)) *delivery {
	return &delivery{Source: s, take: take, start: time.Now()}
}

func (d *delivery) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		case <-timer.C:
		}
		set, next := d.next(time.Now())
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
		if set != nil && (d.forced || !same(set, d.last)) {
			d.last = set
			d.say(set)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(deliveryPause):
		}
	}
}

// say delivers a set, and makes it the latest.
func (d *delivery) say(set *source.Set) {
	d.mu.Lock()
	d.delivered = set
	d.mu.Unlock()
	d.take(set)
}

// next returns the current set, or nil while waiting for the first. It also returns when to look
// again without a response; zero is never.
func (d *delivery) next(now time.Time) (*source.Set, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(now)
	waits, next := d.assignments.counts.waiting > 0, earlier(d.clusters.agenda.next(), d.assignments.agenda.next())
	due := d.start.Add(d.settings.fetchTimeout)
	late := d.settings.fetchTimeout > 0 && !now.Before(due)
	// A server may have nothing but assignments.
	answered := d.clusters.talk.heard || d.unserved() || late && d.toldAssignments()
	d.heard = d.heard || answered && !waits
	switch {
	case d.begun, late && d.unread():
	case d.unread() || waits: // endpoints have a deadline of their own
		if d.settings.fetchTimeout > 0 && !late {
			next = earlier(next, due)
		}
		return nil, next
	default:
		d.begun = true
	}
	set := d.build(now)
	set.Unread = !d.heard && late && !answered
	set.Awaited = !d.heard && !set.Unread
	d.forced = d.settle(set.Unread)
	if d.restored.IsZero() || d.clusters.talk.heard || answered && len(d.clusters.entries) == 0 || d.settings.fetchTimeout == 0 {
		return set, next
	}
	if !late {
		return set, earlier(next, due)
	}
	d.problem(set, "", true, "the management server has not answered since the start: its clusters are those of %s", d.restored.UTC().Format(time.RFC3339))
	return set, next
}

// expire forgets the resources whose TTL has ended, and ends leases.
func (d *delivery) expire(now time.Time) {
	for _, t := range []*table{d.clusters, d.assignments} {
		expired, stale := t.expire(now)
		if len(expired)+len(stale) > 0 {
			d.updates++
		}
		if len(stale) > 0 {
			d.logStale(now, stale)
		}
		if len(expired) > 0 {
			d.wake(d.assignments)
			d.logExpired(now, t.typeURL, expired)
		}
	}
}

func (d *delivery) logStale(now time.Time, names []string) {
	d.stalePace.Warn(now, &d.options.Log, "upstream_assignments_stale").Str("source", d.options.Name).
		Int("count", len(names)).Strs("names", names[:min(len(names), namesTold)]).
		Msg("the management server has not renewed these assignments within their endpoint_stale_after: they have no endpoints until it does")
}

func (d *delivery) logExpired(now time.Time, typeURL string, names []string) {
	d.expiredPace.Warn(now, &d.options.Log, "upstream_resources_expired").Str("source", d.options.Name).Str("type_url", typeURL).
		Int("count", len(names)).Strs("names", names[:min(len(names), namesTold)]).
		Msg("the management server gave these resources a time to live, and it is over")
}
