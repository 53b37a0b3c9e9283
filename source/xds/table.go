package xds

import (
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// table is the known resources of one type. Guarded by Source.mu.
type table struct {
	typeURL string
	minimum int // least number of resources that an update must leave

	// entries are the known resources and, if subscribed by name, the unknown ones too.
	// change counts the changes to the set of names.
	entries      map[string]*entry
	change       int
	subscription int // serial number of the latest subscription

	timeout time.Duration   // how long a set waits for a resource; 0: for ever
	touched map[string]bool // the names of entries that have changed since the last set
	agenda  agenda
	counts  tally

	talk      talk
	nacks     Patience
	stock     *stock // of both types
	endpoints *table // in the table of clusters: that of their endpoints; else nil
}

// wildcard reports whether all resources are subscribed, instead of some by name.
func (t *table) wildcard() bool { return t.typeURL == rules.Cluster }

// entry is one resource.
type entry struct {
	name         string
	serial       int       // differs for each subscription of the name
	subscribedAt time.Time // when it was subscribed by name; zero: it was not
	good         *content  // nil: nothing is in use
	expires      time.Time // when good expires; zero: never
	leaves       time.Time // when good goes, because the server removed it; zero: it did not
	lease        time.Time // when the lease of good ends; zero: it has none, or it has ended
	stale        bool      // the lease has ended: good has no endpoints until it comes again
	gone         bool      // the server reported that it does not exist
	lapsed       bool      // its TTL has ended
	overdue      bool      // the wait for it has ended
	refused      *refusal  // of its last update; nil: accepted
	report       string    // the server's error for it; empty: none

	// In the table's agenda and tally: when time alone changes it next (zero: never), and its
	// counts.
	deadline time.Time
	slot     int
	counts   tally

	// Of an assignment: the clusters that use it, others for those of other sources.
	askers map[string]bool

	// Of a cluster: the name of the assignment that it uses, if any.
	asks    bool
	service string
}

// others stands for the clusters of other sources. No cluster has this name.
const others = ""

// gist is the part of an entry that sets depend on.
type gist struct {
	decoded *decoded // nil if it does not exist or has lapsed
	refused *refusal
	report  string
	timed   bool // time alone may change it
	stale   bool
}

func (e *entry) gist() gist {
	g := gist{refused: e.refused, report: e.report, timed: e.timed(), stale: e.stale}
	if e.good != nil {
		g.decoded = e.good.decoded
	}
	return g
}

// timed reports whether good ends at some time.
func (e *entry) timed() bool { return !e.expires.IsZero() || !e.leaves.IsZero() || !e.lease.IsZero() }

// content is the content of a resource. It is immutable.
type content struct {
	version string
	packed  *anypb.Any
	decoded *decoded // of packed; the same pointer for the same bytes
	updated time.Time
}

// refusal is a refused update.
type refusal struct {
	version string
	reason  string
	packed  *anypb.Any
	time    time.Time
}

func newTable(typeURL string, s *stock, timeout time.Duration) *table {
	return &table{typeURL: typeURL, stock: s, timeout: timeout, nacks: NewPatience(), agenda: newAgenda(), entries: make(map[string]*entry), touched: make(map[string]bool)}
}

// touch marks an entry as changed.
func (t *table) touch(e *entry) {
	t.touched[e.name] = true
	t.schedule(e)
}

// resubscribe subscribes to the endpoints of a cluster's current version, and unsubscribes
// from those of the previous one.
func (t *table) resubscribe(e *entry, now time.Time) {
	if t.endpoints == nil {
		return
	}
	name, asks := assignmentOf(e.good)
	if asks == e.asks && name == e.service {
		return
	}
	if asks {
		t.endpoints.subscribe(name, e.name, now)
	}
	if e.asks {
		t.endpoints.unsubscribe(e.service, e.name)
	}
	e.asks, e.service = asks, name
}

// subscribe subscribes to a name on behalf of a cluster.
func (t *table) subscribe(name, asker string, now time.Time) {
	e := t.entries[name]
	if e == nil {
		t.subscription++
		e = &entry{name: name, serial: t.subscription, subscribedAt: now, askers: make(map[string]bool, 1)}
		t.entries[name] = e
	}
	if len(e.askers) == 0 {
		t.change++
		t.stock.current = t.stock.current.plus(t.amount(name, e.good)) // again, if it was abandoned
	}
	e.askers[asker] = true
	t.touch(e)
}

// unsubscribe abandons a name that no cluster uses any more. Its entry stays until the
// server is told, because the server does not send it again before.
func (t *table) unsubscribe(name, asker string) {
	e := t.entries[name]
	if !e.askers[asker] {
		return
	}
	if delete(e.askers, asker); len(e.askers) == 0 {
		t.change++
		t.stock.current = t.stock.current.minus(t.amount(name, e.good))
	}
	t.touch(e)
}

// purge forgets abandoned entries.
func (t *table) purge() {
	for name, e := range t.entries {
		if !t.subscribed(e) {
			t.use(e, nil)
			t.setRefusal(e, nil)
			delete(t.entries, name)
			t.schedule(e)
		}
	}
}

// subscribed reports whether a resource is still subscribed.
func (t *table) subscribed(e *entry) bool { return t.wildcard() || len(e.askers) > 0 }

// waiting reports whether a subscribed resource is unknown within the timeout. A timeout of 0 is
// none.
func (e *entry) waiting(now time.Time, timeout time.Duration) bool {
	return e.unknown() && (timeout == 0 || now.Before(e.subscribedAt.Add(timeout)))
}

// unknown reports whether a subscribed resource is unknown.
func (e *entry) unknown() bool {
	return len(e.askers) > 0 && e.good == nil && !e.gone && !e.lapsed && e.refused == nil && e.report == ""
}
