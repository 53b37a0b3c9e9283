package eds

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// askWithin is how long a client may take to ask for the assignment of a
	// checked cluster that it took: it has neither health nor checks until then.
	askWithin = 30 * time.Second
	// lookAgain is how soon it is seen that a client asks after all.
	lookAgain = time.Second
)

// asking says whether a client asked for the assignment of a cluster.
type asking uint8

const (
	notLooked asking = iota // it has not taken the cluster as it is, or it is not checked
	owing                   // it took it, and had not asked when that was looked at last
	asked
)

// unasked is what a client of clusters has yet to ask for. It costs nothing but
// where something is owed: what is taken is looked for once on the client's own
// stream, and what is not found there once more when its time is over.
type unasked struct {
	taken []*watch // by the acknowledgement that is being taken in
	owed  []owed
	kept  int         // of these when those were last let go that are watched no longer
	count int         // of those that are owed for long
	at    int64       // when they are looked at next, by Server.now; 0: when something happens
	timer *time.Timer // nil where nothing was ever owed
}

type owed struct {
	watch *watch
	since int64 // by Server.now
}

// debtors are the subscriptions that owe something, by node.
type debtors struct {
	looks sync.Mutex // held by who looks: one at a time
	any   atomic.Int64
	mu    sync.Mutex
	of    map[string]map[*subscription]struct{}
}

func (d *debtors) add(node string, u *subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = make(map[string]map[*subscription]struct{})
	}
	if d.of[node] == nil {
		d.of[node] = make(map[*subscription]struct{})
	}
	d.of[node][u] = struct{}{}
	d.any.Store(int64(len(d.of)))
}

func (d *debtors) remove(node string, u *subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.of[node], u); len(d.of[node]) == 0 {
		delete(d.of, node)
	}
	d.any.Store(int64(len(d.of)))
}

// at gives those of a node.
func (d *debtors) at(node string) []*subscription {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.of[node]))
}

// count is how many assignments are owed for long.
func (d *debtors) count() (n int) {
	var all []*subscription
	d.mu.Lock()
	for _, of := range d.of {
		all = slices.AppendSeq(all, maps.Keys(of))
	}
	d.mu.Unlock()
	for _, u := range all {
		u.mu.Lock()
		n += u.unasked.count
		u.mu.Unlock()
	}
	return n
}

// takes notes that the client has a frame. It is called under the
// subscription's lock.
func (u *subscription) takes(w *watch, f *frame) {
	if f != nil && f.checked && w.asking == notLooked {
		u.unasked.taken = append(u.unasked.taken, w)
	}
}

// takesBefore notes what the client has from an earlier stream.
func (u *subscription) takesBefore(versions map[string]string) {
	for name := range versions {
		u.mu.Lock()
		w := u.watches[name]
		u.mu.Unlock()
		if w == nil {
			continue
		}
		f := w.slot.current()
		u.mu.Lock()
		if versionOf(f) == w.sent {
			u.takes(w, f)
		}
		u.mu.Unlock()
	}
	u.owes()
}

// owes looks for the assignments of what was taken on the client's own stream. What
// is not asked for there is looked for again when its time is over.
func (u *subscription) owes() {
	u.mu.Lock()
	taken, count := u.unasked.taken, u.unasked.count
	u.unasked.taken = nil
	u.mu.Unlock()
	if len(taken) == 0 && count == 0 {
		return
	}
	found := u.stream.asks(taken)
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.stream.server.now()
	for i, w := range taken {
		switch {
		case w.closed:
		case found[i]:
			w.asking = asked
		default:
			w.asking = owing
			u.unasked.owed = append(u.unasked.owed, owed{w, now})
		}
	}
	u.unasked.letGo()
	if u.unasked.count > 0 {
		u.lookIn(lookAgain) // some of them may be gone
	} else if len(u.unasked.owed) > 0 {
		u.lookIn(askWithin)
	}
}

// letGo keeps a client that takes clusters and gives them up again, before they
// are looked at, from being remembered for each time. It is called under the lock.
func (of *unasked) letGo() {
	if len(of.owed) < 64 || len(of.owed) < 2*of.kept {
		return
	}
	of.owed = slices.DeleteFunc(of.owed, func(o owed) bool { return o.watch.closed })
	of.kept = len(of.owed)
}

// asks tells of which clusters the assignments are asked for on this stream.
func (st *stream) asks(clusters []*watch) []bool {
	found, services := make([]bool, len(clusters)), make([]string, len(clusters))
	for i, w := range clusters {
		if f := w.slot.current(); f != nil {
			services[i] = f.service
		}
	}
	st.mu.Lock()
	u := st.subs[1]
	st.mu.Unlock()
	if u == nil {
		return found
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, service := range services {
		found[i] = u.wildcard || u.watches[service] != nil
	}
	return found
}

// lookIn sees to it that what is owed is looked at within d. It is called under
// the lock.
func (u *subscription) lookIn(d time.Duration) {
	s, of := u.stream.server, &u.unasked
	at := s.now() + int64(d)
	if of.at != 0 && of.at <= at {
		return
	}
	of.at = at
	if of.timer == nil {
		of.timer = time.AfterFunc(d, u.look)
		s.debtors.add(u.node, u)
	} else {
		of.timer.Reset(d)
	}
}

// look finds out which assignments the client has not asked for, on whatever
// stream and by polls, and tells where that begins and ends.
func (u *subscription) look() {
	s := u.stream.server
	if !s.gate.Enter() {
		return
	}
	defer s.gate.Leave()
	s.debtors.looks.Lock()
	defer s.debtors.looks.Unlock()
	u.mu.Lock()
	u.unasked.at = 0
	all := slices.Clone(u.unasked.owed)
	u.mu.Unlock()
	found := u.found(all)

	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return
	}
	before := u.unasked.count
	u.settleOwed(found)
	s.tellUnasked(u.node, before, u.unasked.count)
}

// settleOwed takes what was found; others were taken meanwhile. It is called
// under the lock.
func (u *subscription) settleOwed(found map[*watch]asking) {
	of := &u.unasked
	all, now, next := of.owed, u.stream.server.now(), int64(-1)
	of.owed, of.count, of.kept = nil, 0, 0
	for _, o := range all {
		age := now - o.since
		switch {
		case o.watch.closed || !o.watch.holds:
			continue
		case found[o.watch] == asked:
			o.watch.asking = asked
			continue
		case age < int64(askWithin):
			next = max(next, age) // who owes longest is next
		case found[o.watch] == owing:
			of.count++
		case o.watch.queued || o.watch.state == pending:
			next = max(next, 0) // it has yet to learn what there is now
		default:
			o.watch.asking = notLooked // until it takes it when it is checked again
			continue
		}
		of.owed = append(of.owed, o)
	}
	if next >= 0 {
		u.lookIn(askWithin - time.Duration(next))
	}
}

// found tells what is asked for of what is owed: nothing where the cluster is not
// checked any more, which the client has yet to learn.
func (u *subscription) found(all []owed) map[*watch]asking {
	watches, found := make([]*watch, len(all)), make(map[*watch]asking, len(all))
	for i := range all {
		watches[i] = all[i].watch
	}
	var elsewhere *askedNames
	for i, here := range u.stream.asks(watches) {
		f := watches[i].slot.current()
		switch {
		case here:
			found[watches[i]] = asked
			continue
		case f == nil || !f.checked:
			continue
		case elsewhere == nil:
			elsewhere = u.stream.server.askedBy(u.node, u.stream)
		}
		if found[watches[i]] = owing; elsewhere.has(f.service) {
			found[watches[i]] = asked
		}
	}
	return found
}

// askedNames are those of assignments that a node asks for.
type askedNames struct {
	all   bool
	named map[string]struct{}
}

func (n *askedNames) has(name string) bool {
	_, named := n.named[name]
	return n.all || named
}

// askedBy gives the assignments that a node asks for: on its streams, and by
// polls. One without an id is known by one stream alone.
func (s *Server) askedBy(node string, only *stream) *askedNames {
	n := &askedNames{named: make(map[string]struct{})}
	s.mu.Lock()
	streams := make([]*stream, 0, len(s.streams))
	for st := range s.streams {
		if node != "" || st == only {
			streams = append(streams, st)
		}
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.mu.Lock()
		id, u := st.nodeID, st.subs[1]
		st.mu.Unlock()
		if id != node || u == nil {
			continue
		}
		u.mu.Lock()
		n.all = n.all || u.wildcard
		for _, w := range u.watches {
			n.named[w.slot.name] = struct{}{}
		}
		u.mu.Unlock()
	}
	if node != "" {
		s.pollers.addAsked(n, node, s.assignments)
	}
	return n
}

// asksFor is for a node that asks for assignments: it may owe less.
func (s *Server) asksFor(node string) {
	if s.debtors.any.Load() == 0 {
		return
	}
	for _, u := range s.debtors.at(node) {
		u.mu.Lock()
		if u.unasked.count > 0 && !u.over {
			u.lookIn(lookAgain)
		}
		u.mu.Unlock()
	}
}

// tellUnasked logs where a node begins to owe something, or no longer does.
func (s *Server) tellUnasked(node string, before, after int) {
	switch {
	case before == 0 && after > 0:
		s.log.Warn().Str("event", "assignments_not_asked").Str("node", node).Int("count", after).
			Msg("a data plane took clusters that hdsd checks, and does not ask hdsd for their assignments, so that it has neither health nor checks of them: " +
				"make hdsd its ADS, or set data_planes.eds_config_source")
	case before > 0 && after == 0:
		s.log.Info().Str("event", "assignments_asked").Str("node", node).Msg("a data plane asks for the assignments of all checked clusters that it took")
	}
}

// forgive is for a stream that ends.
func (u *subscription) forgive() {
	u.mu.Lock()
	u.over = true
	known := u.unasked.timer != nil
	if known {
		u.unasked.timer.Stop()
	}
	u.unasked = unasked{}
	u.mu.Unlock()
	if known {
		u.stream.server.debtors.remove(u.node, u)
	}
}
