package eds

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hdsd/eds/poll"
	"hdsd/internal/gate"
)

// askWithin is the time for a client to request the assignment of a checked cluster: the
// cluster has neither health nor checks until then.
const askWithin = 30 * time.Second

// A count for the log waits at least countPause after the one before, and countShare times as long
// as that took. Clients that take clusters one after the other do not keep hdsd counting.
const (
	countPause = time.Second
	countShare = 20
)

// unaskedCounter counts the assignments of checked clusters that clients took, and do not request
// on any stream of their node or by polls. It counts when it is asked, and for the log: within
// askWithin of a client taking clusters, and again while assignments are missing.
type unaskedCounter struct {
	published *publication
	recorder  *recorder
	gate      *gate.Gate
	streams   *streams
	polls     *poll.Tracker
	due       atomic.Bool  // a count for the log is due
	latest    atomic.Int64 // number of missing assignments at the latest count

	mu   sync.Mutex  // held while counting
	late map[any]int // by *subscription or poll.Key, at the latest count; positive
}

// expect makes a count for the log due within d.
func (a *unaskedCounter) expect(d time.Duration) {
	if a.due.CompareAndSwap(false, true) {
		time.AfterFunc(d, func() {
			a.due.Store(false)
			if a.gate.Enter() {
				defer a.gate.Leave()
				a.count(time.Now())
			}
		})
	}
}

// sum returns the number of missing assignments at the latest count. It does not wait for a count.
func (a *unaskedCounter) sum() int { return int(a.latest.Load()) }

// count returns the number of missing assignments of each client that lacks any: of subscriptions
// to clusters, and of polls. It logs the clients that begin or cease to lack some. The caller must
// not change the result.
func (a *unaskedCounter) count(now time.Time) map[any]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	c := &unaskedCount{
		unaskedCounter: a, now: now, nodes: make(map[string][]*stream), asked: make(map[string]*askedNames), late: make(map[any]int), next: askWithin,
	}
	streams := a.streams.list()
	for _, st := range streams {
		id := st.name()
		c.nodes[id] = append(c.nodes[id], st)
	}
	for _, st := range streams {
		if clusters, assignments := st.pair(); clusters != nil {
			c.add(clusters, clusters.node, c.countStream(clusters, assignments))
		}
	}
	for _, p := range a.polls.All(now) {
		if p.TypeURL == a.published.clusters.typeURL && p.Accepted != nil {
			c.add(p.Key, p.ID, c.countPoll(&p))
		}
	}
	sum := 0
	for _, n := range c.late {
		sum += n
	}
	a.late = c.late
	a.latest.Store(int64(sum))
	if len(c.late) > 0 || c.next < askWithin {
		a.expect(max(c.next, countPause, countShare*time.Since(began)))
	}
	return c.late
}

// unaskedCount is one count.
type unaskedCount struct {
	*unaskedCounter
	now   time.Time
	nodes map[string][]*stream   // by node
	asked map[string]*askedNames // by node
	late  map[any]int
	next  time.Duration // time until the next assignment is overdue
}

// add adds the count of a client.
func (c *unaskedCount) add(client any, node string, late int) {
	c.recorder.unasked(node, c.unaskedCounter.late[client], late)
	if late > 0 {
		c.late[client] = late
	}
}

// overdue reports whether a client has had the time to request an assignment.
func (c *unaskedCount) overdue(since int64) bool {
	rest := askWithin - time.Duration(c.now.UnixNano()-since)
	if rest > 0 {
		c.next = min(c.next, rest)
	}
	return rest <= 0
}

// taken is a checked cluster that a client took.
type taken struct {
	watch   *watch
	since   int64  // in Unix nanoseconds
	version uint64 // 0: the client has not answered the latest response with it, or refused it
}

// countStream counts the missing assignments of a stream's clusters. The latest version of a
// cluster names the assignment. While the client does not have that version, the cluster only
// keeps the previous count from falling.
func (c *unaskedCount) countStream(clusters, assignments *subscription) int {
	late, uncertain := 0, 0
	asked := sync.OnceValue(func() *askedNames { return c.askedBy(clusters) })
	for _, t := range takenClusters(clusters) {
		f := t.watch.current()
		switch {
		case f == nil || !f.checked || requested(assignments, f.service):
		case !c.overdue(max(t.since, f.needed)):
		case asked().includes(f.service):
		case f.version == t.version:
			late++
		default:
			uncertain++
		}
	}
	return max(late, min(late+uncertain, c.unaskedCounter.late[clusters]))
}

// countPoll counts the missing assignments of polled clusters.
func (c *unaskedCount) countPoll(p *poll.Poll) (late int) {
	if !c.overdue(p.AcceptTime.UnixNano()) {
		return 0
	}
	asked := c.askedByNode(p.ID)
	for _, slot := range c.published.find(c.published.clusters, p.Accepted.Keys, "").slots {
		if f := slot.latest(); f != nil && f.checked && !asked.includes(f.service) {
			late++
		}
	}
	return late
}

// askedBy returns the assignments that the node of a stream requests. A node without an id has
// only the one stream.
func (c *unaskedCount) askedBy(u *subscription) *askedNames {
	if u.node != "" {
		return c.askedByNode(u.node)
	}
	n := &askedNames{named: make(map[string]struct{})}
	n.addStream(u.stream)
	return n
}

// askedByNode returns the assignments that a node requests, on its streams and by polls.
func (c *unaskedCount) askedByNode(node string) *askedNames {
	n := c.asked[node]
	if n != nil {
		return n
	}
	n = &askedNames{named: make(map[string]struct{})}
	c.asked[node] = n
	for _, st := range c.nodes[node] {
		n.addStream(st)
	}
	wildcard := c.polls.Requested(node, c.published.assignments.typeURL, c.now, func(key string) {
		name, _, _ := strings.Cut(key, separator)
		n.named[name] = struct{}{}
	})
	n.wildcard = n.wildcard || wildcard
	return n
}

// askedNames are the assignments that a node requests.
type askedNames struct {
	wildcard bool
	named    map[string]struct{}
}

func (n *askedNames) includes(name string) bool {
	_, named := n.named[name]
	return n.wildcard || named
}

// addStream adds the assignments that a stream requests.
func (n *askedNames) addStream(st *stream) {
	_, u := st.pair()
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n.wildcard = n.wildcard || u.interest.wildcard
	for w := range u.interest.all() {
		n.named[w.slot.name] = struct{}{}
	}
}

// takenClusters returns the clusters that the client of a subscription took as checked ones.
func takenClusters(u *subscription) []taken {
	u.mu.Lock()
	defer u.mu.Unlock()
	clusters := make([]taken, 0, len(u.interest.watches))
	for _, w := range u.interest.watches {
		if w.taken == 0 {
			continue
		}
		t := taken{watch: w, since: w.taken}
		if w.state == accepted || w.state == fresh {
			t.version = w.sent
		}
		clusters = append(clusters, t)
	}
	return clusters
}

// requested reports whether a subscription, which may be nil, includes an assignment.
func requested(u *subscription, name string) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interest.includes(name)
}

// take records that the client has a frame, and the time since which it has one of a checked
// cluster. It is called under the subscription's lock.
func (w *watch) take(f *frame, now time.Time) {
	switch {
	case f == nil || !f.checked:
		w.taken = 0
	case w.taken == 0:
		w.taken = now.UnixNano()
	}
}
