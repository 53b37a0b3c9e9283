package xds

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/envoyrules"
)

// table is what is known of the resources of one type. Guarded by Source.mu.
type table struct {
	typeURL string
	minimum int // least number of resources that an update must leave

	// entries are the resources that are known and, where they are asked for
	// by name, those that are not known yet. change counts what changes which
	// names there are.
	entries map[string]*entry
	change  int
	asked   int // serial number of the last name asked for

	// What need not be looked for among all entries: names of those that have
	// changed since the last set, and those that time alone may change.
	touched map[string]bool
	open    map[string]*entry

	talk      talk
	stock     *stock // of both types
	endpoints *table // of clusters: where theirs are asked for; else nil
}

// wildcard tells whether all resources are asked for, instead of some by name.
func (t *table) wildcard() bool { return t.typeURL == envoyrules.Cluster }

// entry is one resource.
type entry struct {
	name    string
	serial  int       // differs each time that the name is asked for anew
	asked   time.Time // when it was asked for by name; zero: it was not
	good    *content  // nil: there is nothing in use
	expires time.Time // when good does; zero: never
	gone    bool      // the server said that there is none
	lapsed  bool      // it had a time to live, and that is over
	refused *refusal  // of its last update; nil: that was taken
	report  string    // what the server said is wrong with it; empty: nothing

	// Of an assignment: the clusters that ask for it, others stands for those
	// of other sources; and whether it was waited for when the last set was made.
	askers map[string]bool
	waited bool

	// Of a cluster: the name of the assignment that it asks for, if it does.
	asks    bool
	service string
}

// others is a name that no cluster has.
const others = ""

// gist is what sets depend on of an entry.
type gist struct {
	message proto.Message // none where it is gone or has lapsed
	refused *refusal
	report  string
	expires bool
}

func (e *entry) gist() gist {
	g := gist{refused: e.refused, report: e.report, expires: !e.expires.IsZero()}
	if e.good != nil {
		g.message = e.good.message
	}
	return g
}

// content is what a resource says. It is not changed once made.
type content struct {
	version string
	packed  *anypb.Any
	message proto.Message // of packed; the same as before where the bytes are
	updated time.Time

	endpoints int // in message
}

func (c *content) cluster() *clusterv3.Cluster {
	m, _ := c.message.(*clusterv3.Cluster)
	return m
}

func (c *content) assignment() *endpointv3.ClusterLoadAssignment {
	m, _ := c.message.(*endpointv3.ClusterLoadAssignment)
	return m
}

// refusal is an update that was refused.
type refusal struct {
	version string
	reason  string
	packed  *anypb.Any
	at      time.Time
}

func newTable(typeURL string, s *stock) *table {
	return &table{typeURL: typeURL, stock: s, entries: make(map[string]*entry), touched: make(map[string]bool), open: make(map[string]*entry)}
}

// touch notes that an entry is not what it was.
func (t *table) touch(e *entry) {
	t.touched[e.name] = true
	if t.entries[e.name] == e && (e.good == nil || !e.expires.IsZero()) {
		t.open[e.name] = e
	} else {
		delete(t.open, e.name)
	}
}

// names are those of what was not given up.
func (t *table) names() []string {
	all := make([]string, 0, len(t.entries))
	for name, e := range t.entries {
		if t.wants(e) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// follow asks for the endpoints of a cluster as it is now, and no longer for
// those of what it was.
func (t *table) follow(e *entry, now time.Time) {
	if t.endpoints == nil {
		return
	}
	name, asks := asksFor(e.good)
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

// subscribe asks for a name on behalf of a cluster.
func (t *table) subscribe(name, asker string, now time.Time) {
	e := t.entries[name]
	if e == nil {
		t.asked++
		e = &entry{name: name, serial: t.asked, asked: now, askers: make(map[string]bool, 1)}
		t.entries[name] = e
	}
	if len(e.askers) == 0 {
		t.change++
		t.stock.has = t.stock.has.plus(t.amount(name, e.good)) // again, if it had been given up
	}
	e.askers[asker] = true
	t.touch(e)
}

// unsubscribe gives up a name that no cluster asks for any more. It stays until
// the server was told, since until then that sends nothing that it has sent.
func (t *table) unsubscribe(name, asker string) {
	e := t.entries[name]
	if !e.askers[asker] {
		return
	}
	if delete(e.askers, asker); len(e.askers) == 0 {
		t.change++
		t.stock.has = t.stock.has.minus(t.amount(name, e.good))
	}
	t.touch(e)
}

// purge forgets what was given up.
func (t *table) purge() {
	for name, e := range t.entries {
		if !t.wants(e) {
			t.use(e, nil)
			t.blame(e, nil)
			delete(t.entries, name)
			delete(t.open, name)
		}
	}
}

// wants tells whether a resource was not given up.
func (t *table) wants(e *entry) bool { return t.wildcard() || len(e.askers) > 0 }

// asks tells whether there is anything to ask for.
func (t *table) asks() bool {
	if t.wildcard() {
		return true
	}
	for _, e := range t.entries {
		if t.wants(e) {
			return true
		}
	}
	return false
}

// waiting tells whether nothing is known of a resource that was asked for, and
// it is not too late for it; a timeout of 0 is none.
func (e *entry) waiting(now time.Time, timeout time.Duration) bool {
	return len(e.askers) > 0 && e.good == nil && !e.gone && !e.lapsed && e.refused == nil && e.report == "" &&
		(timeout == 0 || now.Before(e.asked.Add(timeout)))
}

// complete tells whether every resource that is asked for by name is known,
// after a purge.
func (t *table) complete() bool {
	for _, e := range t.entries {
		if e.good == nil {
			return false
		}
	}
	return true
}
