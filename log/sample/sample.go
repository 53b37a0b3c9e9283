package sample

import (
	"fmt"
	"math/rand/v2"
	"time"

	"hdsd/health"
	"hdsd/log"
)

// Start is the time of the first entry.
var Start = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

// Entries returns random entries, one a second from Start. Few names recur in them, so later entries
// change the rows of earlier ones. Each part of an entry is in about a quarter of them.
func Entries(r *rand.Rand, count int) []*log.Entry {
	entries := make([]*log.Entry, count)
	for i := range entries {
		d := draw{r, Start.Add(time.Duration(i) * time.Second)}
		entries[i] = d.entry()
	}
	return entries
}

// draw draws the parts of an entry.
type draw struct {
	*rand.Rand
	now time.Time
}

func (d draw) entry() *log.Entry {
	e := &log.Entry{}
	maybe := func(part func()) {
		if d.IntN(4) == 0 {
			part()
		}
	}
	maybe(func() { e.Freeze = &log.FreezeChange{Before: d.freeze(), After: d.freeze(), By: d.name("operator")} })
	maybe(func() {
		e.Held = &log.Freeze{Reason: "moved", Author: d.name("operator"), Since: d.now, Held: d.held()}
	})
	maybe(func() { e.Overrides = list(d, d.override) })
	maybe(func() {
		e.Trust = &log.TrustChange{Checker: d.name("checker"), Before: d.trust(), After: d.trust(), By: d.name("operator")}
	})
	maybe(func() { e.Clusters = list(d, func() string { return d.name("cluster") }) })
	maybe(func() {
		e.Voted = rows(d, d.hash, func() health.Verdict { return health.Verdict{Status: d.status(), Since: d.time()} })
	})
	maybe(func() { e.Transitions = list(d, d.transition) })
	maybe(func() { e.Unvoted = list(d, d.hash) })
	maybe(func() { e.TakenOver = list(d, func() string { return d.name("cluster") }) })
	maybe(func() { e.GivenBack = list(d, func() string { return d.name("cluster") }) })
	maybe(func() { e.Removed = list(d, func() string { return d.name("cluster") }) })
	maybe(func() {
		e.Plan = map[string][]health.Hash{d.name("checker"): nil, d.name("checker"): list(d, d.hash)}
	})
	maybe(func() {
		e.Established = rows(d, func() string { return d.name("checker") }, func() log.Established {
			return log.Established{Identity: d.name("identity"), Seen: d.time(), StandIn: d.time(), Founder: d.IntN(2) == 0}
		})
	})
	maybe(func() { e.Trials = rows(d, func() string { return d.name("shape") }, d.trials) })
	maybe(func() {
		e.Penalties = rows(d, d.hash, func() log.Penalty {
			return log.Penalty{Value: d.Float64() * 4, At: d.now, Suppressed: d.IntN(2) == 0}
		})
	})
	maybe(func() { e.Events = list(d, d.event) })
	maybe(func() { e.Order = log.OrderID{Process: d.Uint64(), Number: 1 + d.Uint64N(1<<40)} })
	maybe(func() {
		e.Operator = &log.Operator{Identity: d.name("identity"), Address: "10.0.0.9:4321", Time: d.now}
	})
	return e
}

// list returns one to four items.
func list[T any](d draw, item func() T) (items []T) {
	for range 1 + d.IntN(4) {
		items = append(items, item())
	}
	return items
}

// rows returns one to four rows, some of which are removals.
func rows[K comparable, V any](d draw, key func() K, row func() V) map[K]*V {
	changed := map[K]*V{}
	for range 1 + d.IntN(4) {
		k := key()
		if changed[k] = nil; d.IntN(4) > 0 {
			v := row()
			changed[k] = &v
		}
	}
	return changed
}

func (d draw) name(kind string) string { return fmt.Sprintf("%s-%d", kind, d.IntN(4)) }

func (d draw) status() health.Status { return health.Status(d.IntN(int(health.Degraded) + 1)) }

// time returns the time of the entry, an earlier one, or the zero time.
func (d draw) time() time.Time {
	switch d.IntN(3) {
	case 0:
		return time.Time{}
	case 1:
		return d.now.Add(-time.Duration(d.Int64N(int64(time.Hour))))
	}
	return d.now
}

func (d draw) locality() health.Locality {
	return health.Locality{Region: d.name("region"), Zone: d.name("zone")}
}

func (d draw) endpoint() health.Endpoint {
	return health.Endpoint{Cluster: d.name("cluster"), Locality: d.locality(), Address: fmt.Sprintf("10.0.0.%d:80", d.IntN(4))}
}

func (d draw) hash() health.Hash { return d.endpoint().Hash() }

func (d draw) held() map[health.Hash]health.Status {
	held := map[health.Hash]health.Status{}
	for range d.IntN(4) {
		held[d.hash()] = d.status()
	}
	return held
}

// freeze returns a freeze with or without held health, or nil.
func (d draw) freeze() *log.Freeze {
	if d.IntN(3) == 0 {
		return nil
	}
	f := &log.Freeze{Reason: "trouble", Author: d.name("operator"), Since: d.now}
	if d.IntN(2) == 0 {
		f.Held = d.held()
	}
	return f
}

func (d draw) override() log.OverrideChange {
	c := log.OverrideChange{
		Override: log.Override{Scope: d.endpoint(), Status: d.status(), Reason: "maintenance", Author: d.name("operator"), Since: d.now, Until: d.time()},
		Kind:     log.ChangeKind(d.IntN(int(log.Expired) + 1)), By: d.name("operator"),
	}
	if c.Kind == log.Set && d.IntN(2) == 0 {
		c.Replaced = &log.Override{Scope: c.Override.Scope, Status: d.status(), Reason: "trouble", Author: d.name("operator"), Since: d.time(), Until: d.time()}
	}
	return c
}

func (d draw) event() log.Event {
	e := log.Event{Time: d.now, Kind: log.EventKind(1 + d.IntN(30)), Text: d.name("text"), Whole: d.IntN(8) == 0}
	if d.IntN(2) == 0 {
		e.Checker, e.Locality = d.name("checker"), d.locality()
		return e
	}
	k := d.endpoint()
	e.Cluster, e.Locality, e.Address, e.Author, e.Identity = k.Cluster, k.Locality, k.Address, d.name("operator"), d.name("identity")
	return e
}

// trust returns an operator's trust, or nil.
func (d draw) trust() *log.Trust {
	if d.IntN(3) == 0 {
		return nil
	}
	return &log.Trust{Level: log.Distrusted + log.TrustLevel(d.IntN(2)), Reason: "repaired", Author: d.name("operator"), Since: d.now}
}

func (d draw) transition() health.Transition {
	t := health.Transition{Time: d.now, Endpoint: d.endpoint(), From: d.status(), To: d.status(), Reason: "2 of 3 checkers say so"}
	for range d.IntN(4) {
		t.Observations = append(t.Observations, health.Observation{
			Checker: d.name("checker"), Status: d.status(), HTTPStatusCode: uint16(d.IntN(600)), Time: d.time(), Disbelieved: []string{"", health.NotHeard}[d.IntN(2)],
		})
	}
	if d.IntN(8) == 0 {
		moved := d.locality()
		t.Moved = &moved
	}
	return t
}

func (d draw) trials() log.Trials {
	t := log.Trials{Retries: d.IntN(4)}
	if d.IntN(2) == 0 {
		t.Proven = list(d, func() log.Proof { return log.Proof{Build: d.Uint64(), Shape: d.Uint64()} })
		t.Blamed = list(d, d.Uint64)
		t.Losses = list(d, func() log.Loss {
			return log.Loss{Checker: d.name("checker"), Identity: d.name("identity"), Time: d.now}
		})
	}
	return t
}
