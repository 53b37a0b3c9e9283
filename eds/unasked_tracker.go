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

// unaskedTracker finds nodes that took checked clusters and do not ask for their assignments,
// on whatever stream and by polls.
type unaskedTracker struct {
	published *publication
	recorder  *recorder
	gate      *gate.Gate
	streams   *streams
	polls     *poll.Tracker

	checking sync.Mutex // held during a check: one at a time
	any      atomic.Int64
	mu       sync.Mutex
	nodes    map[string]map[*unasked]struct{} // those that may have something missing, by node
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
	a.any.Store(int64(len(a.nodes)))
}

func (a *unaskedTracker) remove(n *unasked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node := n.sub.node
	if delete(a.nodes[node], n); len(a.nodes[node]) == 0 {
		delete(a.nodes, node)
	}
	a.any.Store(int64(len(a.nodes)))
}

// count returns how many assignments are late, on streams and of polls.
func (a *unaskedTracker) count(now time.Time) int {
	var all []*unasked
	a.mu.Lock()
	for _, of := range a.nodes {
		all = slices.AppendSeq(all, maps.Keys(of))
	}
	a.mu.Unlock()
	count := a.polls.Unasked(now)
	for _, n := range all {
		count += n.count()
	}
	return count
}

// nodeAsks makes checks due because a node asks for assignments: fewer may be missing.
func (a *unaskedTracker) nodeAsks(node string) {
	if a.any.Load() == 0 {
		return
	}
	a.mu.Lock()
	all := slices.Collect(maps.Keys(a.nodes[node]))
	a.mu.Unlock()
	for _, n := range all {
		n.recheck()
	}
}

// check finds out which assignments the client of a stream has not asked for.
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

// find tells which missing assignments the client asks for. It says nothing of a cluster
// that hdsd no longer checks: the client has yet to learn that.
func (a *unaskedTracker) find(u *subscription, all []missed) map[*watch]asking {
	watches, found := make([]*watch, len(all)), make(map[*watch]asking, len(all))
	for i := range all {
		watches[i] = all[i].watch
	}
	var elsewhere *askedNames
	for i, here := range u.stream.asksFor(watches) {
		f := watches[i].current()
		switch {
		case here:
			found[watches[i]] = asked
			continue
		case f == nil || !f.checked:
			continue
		case elsewhere == nil:
			elsewhere = a.askedBy(u.node, u.stream)
		}
		if found[watches[i]] = missing; elsewhere.has(f.service) {
			found[watches[i]] = asked
		}
	}
	return found
}

// checkPoll looks for the assignments that a client that polls clusters has yet to ask
// for, if a check is due.
func (a *unaskedTracker) checkPoll(key poll.Key, now time.Time) {
	taken := a.polls.Due(key, askWithin, now)
	if taken == nil {
		return
	}
	count, asks := 0, a.askedBy(key.ID, nil)
	for _, slot := range a.published.find(a.published.clusters, taken, "").slots {
		if f := slot.latest(); f != nil && f.checked && !asks.has(f.service) {
			count++
		}
	}
	a.recorder.unasked(key.ID, a.polls.SetUnasked(key, count), count)
}

// askedBy returns the assignments that a node asks for, on its streams and by polls. A
// node without an id has only the given stream.
func (a *unaskedTracker) askedBy(node string, only *stream) *askedNames {
	n := &askedNames{named: make(map[string]struct{})}
	for _, st := range a.streams.all() {
		if node != "" || st == only {
			st.addAsked(n, node)
		}
	}
	if node != "" {
		all := a.polls.Requested(node, a.published.assignments.typeURL, time.Now(), func(key string) {
			name, _, _ := strings.Cut(key, separator)
			n.named[name] = struct{}{}
		})
		n.all = n.all || all
	}
	return n
}

// askedNames are the assignments that a node asks for.
type askedNames struct {
	all   bool
	named map[string]struct{}
}

func (n *askedNames) has(name string) bool {
	_, named := n.named[name]
	return n.all || named
}

// addAsked adds the assignments that a stream of a node asks for.
func (st *stream) addAsked(n *askedNames, node string) {
	st.mu.Lock()
	id, u := st.nodeID, st.subs[1]
	st.mu.Unlock()
	if id != node || u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n.all = n.all || u.interest.wildcard
	for _, w := range u.interest.watches {
		n.named[w.slot.name] = struct{}{}
	}
	u.member.others(func(w watch, _ *frame) { n.named[w.slot.name] = struct{}{} })
}

// asksFor tells, for each cluster, whether its assignment is asked for on this stream.
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
		found[i] = u.interest.has(service) || u.member.has(service)
	}
	return found
}
