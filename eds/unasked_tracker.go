package eds

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hdsd/eds/poll"
	"hdsd/internal/gate"
)

// unaskedTracker finds nodes that accepted checked clusters and do not request their
// assignments, on any stream or by polls.
type unaskedTracker struct {
	published *publication
	recorder  *recorder
	gate      *gate.Gate
	streams   *streams
	polls     *poll.Tracker

	checking sync.Mutex // held during a check: one at a time
	total    atomic.Int64
	mu       sync.Mutex
	nodes    map[string]map[*unasked]struct{} // unasked lists that may be non-empty, by node
}

func (a *unaskedTracker) add(n *unasked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nodes == nil {
		a.nodes = make(map[string]map[*unasked]struct{})
	}
	node := n.sub.node
	if a.nodes[node] == nil {
		a.nodes[node] = make(map[*unasked]struct{})
	}
	a.nodes[node][n] = struct{}{}
	a.total.Store(int64(len(a.nodes)))
}

func (a *unaskedTracker) remove(n *unasked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node := n.sub.node
	if delete(a.nodes[node], n); len(a.nodes[node]) == 0 {
		delete(a.nodes, node)
	}
	a.total.Store(int64(len(a.nodes)))
}

// count returns the number of late assignments, on streams and of polls.
func (a *unaskedTracker) count(now time.Time) int {
	var list []*unasked
	a.mu.Lock()
	for _, set := range a.nodes {
		list = slices.AppendSeq(list, maps.Keys(set))
	}
	a.mu.Unlock()
	count := a.polls.Unasked(now)
	for _, n := range list {
		count += n.count()
	}
	return count
}

// nodeAsks makes checks due because a node requests assignments: fewer may be missing.
func (a *unaskedTracker) nodeAsks(node string) {
	if a.total.Load() == 0 {
		return
	}
	a.mu.Lock()
	list := slices.Collect(maps.Keys(a.nodes[node]))
	a.mu.Unlock()
	for _, n := range list {
		n.recheck()
	}
}

// check finds the assignments that the client of a stream has not requested.
func (a *unaskedTracker) check(n *unasked) {
	if !a.gate.Enter() {
		return
	}
	defer a.gate.Leave()
	a.checking.Lock()
	defer a.checking.Unlock()
	found := a.find(n.sub, n.begin())
	n.finish(found, func(before, after int) { a.recorder.unasked(n.sub.node, before, after) })
}

// find reports which missing assignments the client requests. It omits clusters that hdsd no
// longer checks: the client has yet to learn that.
func (a *unaskedTracker) find(u *subscription, list []missed) map[*watch]asking {
	watches, found := make([]*watch, len(list)), make(map[*watch]asking, len(list))
	for i := range list {
		watches[i] = list[i].watch
	}
	var elsewhere *askedNames
	for i, requested := range u.stream.asksFor(watches) {
		f := watches[i].current()
		switch {
		case requested:
			found[watches[i]] = asked
			continue
		case f == nil || !f.checked:
			continue
		case elsewhere == nil:
			elsewhere = a.askedBy(u.node, u.stream)
		}
		if found[watches[i]] = missing; elsewhere.includes(f.service) {
			found[watches[i]] = asked
		}
	}
	return found
}

// checkPoll looks for the assignments that a client polling clusters has yet to request, if a
// check is due.
func (a *unaskedTracker) checkPoll(key poll.Key, now time.Time) {
	accepted := a.polls.Due(key, askWithin, now)
	if accepted == nil {
		return
	}
	count, asks := 0, a.askedBy(key.ID, nil)
	for _, slot := range a.published.find(a.published.clusters, accepted, "").slots {
		if f := slot.latest(); f != nil && f.checked && !asks.includes(f.service) {
			count++
		}
	}
	a.recorder.unasked(key.ID, a.polls.SetUnasked(key, count), count)
}

// askedBy returns the assignments that a node requests, on its streams and by polls. A node
// without an id has only the current stream.
func (a *unaskedTracker) askedBy(node string, current *stream) *askedNames {
	n := &askedNames{named: make(map[string]struct{})}
	for _, st := range a.streams.list() {
		if node != "" || st == current {
			st.addAsked(n, node)
		}
	}
	if node != "" {
		wildcard := a.polls.Requested(node, a.published.assignments.typeURL, time.Now(), func(key string) {
			name, _, _ := strings.Cut(key, separator)
			n.named[name] = struct{}{}
		})
		n.wildcard = n.wildcard || wildcard
	}
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

// addAsked adds the assignments that a stream of a node requests.
func (st *stream) addAsked(n *askedNames, node string) {
	st.mu.Lock()
	id, u := st.nodeID, st.subs[1]
	st.mu.Unlock()
	if id != node || u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n.wildcard = n.wildcard || u.interest.wildcard
	for _, w := range u.interest.watches {
		n.named[w.slot.name] = struct{}{}
	}
	u.member.visitShared(func(w watch, _ *frame) { n.named[w.slot.name] = struct{}{} })
}

// asksFor reports, for each cluster, whether its assignment is requested on this stream.
func (st *stream) asksFor(clusters []*watch) []bool {
	found, services := make([]bool, len(clusters)), make([]string, len(clusters))
	for i, w := range clusters {
		if f := w.current(); f != nil {
			services[i] = f.service
		}
	}
	_, u := st.pair()
	if u == nil {
		return found
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, service := range services {
		found[i] = u.interest.includes(service) || u.member.includes(service)
	}
	return found
}
