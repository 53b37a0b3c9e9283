package replica

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/fleet"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/log/batch"
	"hdsd/machine"
	"hdsd/ruling"
)

const (
	reportInterval = time.Second
	grace          = 5 * time.Second
	settle         = 3 * time.Second
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// lab is a fleet of replicas with their log, links and checkers, on a clock of its own.
type lab struct {
	testing.TB
	*rand.Rand
	now    time.Time
	queue  []occurrence // in the order of time
	serial uint64       // of occurrences, processes and links

	log       simLog
	processes map[string]*process // by replica
	links     map[[2]string]*simLink
	checkers  map[string]*simChecker
	clusters  []*catalog.Cluster
	variants  map[string][]*catalog.Cluster // that a replica has instead
	truth     map[string][]segment          // by address
	orders    map[log.OrderID]*simOrder
	noted     map[string]bool   // texts of events that leaders note, or operators
	digests   map[uint64]string // of the state, by cursor
	promoted  int
	deposed   int
	overflows int
	drops     func(Message) bool // loses messages although their link stays; may be nil
	older     map[string]bool    // replicas of a release that tells no clusters
	prompt    bool               // no message is slow
	slow      bool               // sources answer some time after a start
	maximum   int                // records that may wait
	payload   int                // bytes of a commit
	base      time.Time          // start, with a monotonic part; zero: the clocks of all are right
}

// occurrence is something that happens at a time.
type occurrence struct {
	time   time.Time
	serial uint64
	do     func()
}

// segment is a time in which an address has one true status, or one published health.
type segment struct {
	begin  time.Time
	status health.Status
}

// simOrder is an order of an operator.
type simOrder struct {
	process  *process
	operator log.Operator
	event    *log.Event // of an Annotate; nil: it is another order
	done     bool
	err      error
}

func newLab(t testing.TB, seed uint64) *lab {
	l := &lab{
		TB: t, Rand: rand.New(rand.NewPCG(seed, 7)), now: start, processes: map[string]*process{}, links: map[[2]string]*simLink{},
		checkers: map[string]*simChecker{}, truth: map[string][]segment{}, orders: map[log.OrderID]*simOrder{}, digests: map[uint64]string{}, payload: 1 << 20,
		noted: map[string]bool{}, older: map[string]bool{},
	}
	l.log.lab = l
	return l
}

// schedule lets something happen after a time.
func (l *lab) schedule(after time.Duration, do func()) {
	l.serial++
	o := occurrence{l.now.Add(after), l.serial, do}
	i, _ := slices.BinarySearchFunc(l.queue, o, func(a, b occurrence) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.serial, b.serial)) })
	l.queue = slices.Insert(l.queue, i, o)
}

// pass lets time pass.
func (l *lab) pass(d time.Duration) {
	end := l.now.Add(d)
	for len(l.queue) > 0 && !l.queue[0].time.After(end) {
		next := l.queue[0]
		l.queue = l.queue[1:]
		l.now = next.time
		next.do()
	}
	l.now = end
}

// between returns a random duration.
func (l *lab) between(least, most time.Duration) time.Duration {
	return least + time.Duration(l.Int64N(int64(most-least)+1))
}

// simLog is a log with fencing, like that of package log/etcd.
type simLog struct {
	*lab
	entries []Read
	epoch   int64
	leader  *process // nil: none
	away    bool
	chain   map[health.Endpoint]health.Status
	joiner  batch.Joiner
	orders  map[log.OrderID]int
	history []string // what the entries tell
	gone    []string // endpoints that left
}

// commit appends an entry if the process leads.
func (g *simLog) commit(p *process, c Commit) Event {
	switch {
	case c.Sequence <= uint64(len(g.entries)) && g.entries[c.Sequence-1].Epoch == c.Epoch && bytes.Equal(g.entries[c.Sequence-1].Payload, c.Payload):
		return Committed{c.Epoch, c.Sequence}
	case g.leader != p || g.epoch != c.Epoch:
		return Refused{c.Epoch, c.Sequence, errors.New("fenced")}
	case c.Sequence != uint64(len(g.entries))+1:
		g.Errorf("a commit of entry %d to a log of %d", c.Sequence, len(g.entries))
		return Refused{c.Epoch, c.Sequence, errors.New("gap")}
	}
	g.entries = append(g.entries, Read{c.Sequence, c.Epoch, 0, c.Payload})
	g.check(c)
	for _, p := range g.running() {
		p.fetch()
	}
	return Committed{c.Epoch, c.Sequence}
}

// check covers that transitions are in the log once: the transitions of each endpoint are a chain. Events are in it
// once, too, and entries have the operator of their order.
func (g *simLog) check(c Commit) {
	entries, err := g.joiner.Add(c.Payload)
	if err != nil {
		g.Fatal(err)
	}
	if g.chain == nil {
		g.chain, g.orders = map[health.Endpoint]health.Status{}, map[log.OrderID]int{}
	}
	counted := map[log.OrderID]bool{}
	for _, e := range entries {
		g.history = append(g.history, historyOf(e)...)
		for i := range e.Events {
			if text := e.Events[i].Text; !g.noted[text] {
				g.Errorf("entry %d has an event that nobody has noted, or again: %s", c.Sequence, text)
			} else {
				delete(g.noted, text)
			}
		}
		g.checkOperator(e)
		for i := range e.Transitions {
			t := &e.Transitions[i]
			if t.From != g.chain[t.Endpoint] || t.From == t.To {
				g.Errorf("entry %d has a transition of %s from %v to %v, which is %v", c.Sequence, t.Endpoint.Address, t.From, t.To, g.chain[t.Endpoint])
			}
			if g.chain[t.Endpoint] = t.To; ruling.IsGone(t.To, t.Reason) {
				g.gone = append(g.gone, fmt.Sprintf("%s of %s after %v", t.Endpoint.Address, t.Endpoint.Cluster, g.now.Sub(start)))
			}
		}
		if e.Order != (log.OrderID{}) && !counted[e.Order] {
			counted[e.Order] = true
			g.orders[e.Order]++
		}
	}
}

// elect makes a process the leader some time after the end of the previous one.
func (g *simLog) elect() {
	if g.leader != nil || g.away {
		return
	}
	var candidates []*process
	for _, p := range g.running() {
		if !p.paused && !p.cut {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) == 0 {
		return
	}
	g.epoch += 1 + g.Int64N(3)
	g.leader = candidates[g.IntN(len(candidates))]
	g.leader.post(0, g.between(0, 20*time.Millisecond), Won{g.epoch, uint64(len(g.entries))})
	g.tellMembers()
}

// running returns the processes in the order of their ids.
func (l *lab) running() (all []*process) {
	for _, id := range slices.Sorted(maps.Keys(l.processes)) {
		all = append(all, l.processes[id])
	}
	return all
}

// tellMembers tells all replicas which of them have a session, and which one leads.
func (g *simLog) tellMembers() {
	var members []string
	for _, p := range g.running() {
		if !p.expired {
			members = append(members, p.id)
		}
	}
	for _, id := range members {
		m := Members{Replicas: members}
		if g.leader != nil {
			m.Leader, m.Epoch = g.leader.id, g.epoch
		}
		g.processes[id].post(5, g.between(0, 50*time.Millisecond), m)
	}
}

// endEpoch ends the leadership, as the end of the leader's session does. The leader may hear of it late.
func (g *simLog) endEpoch() {
	if p := g.leader; p != nil {
		g.leader = nil
		p.post(0, g.between(0, 2*time.Second), Lost{g.epoch})
		g.schedule(g.between(10*time.Millisecond, time.Second), g.elect)
	}
}

// process is one run of a replica.
type process struct {
	*lab
	id      string
	number  uint64
	replica *Replica
	paused  bool
	cut     bool // from the log
	ended   bool
	expired bool              // its session has ended
	waiting []Event           // while it is paused
	latest  map[int]time.Time // time of the last event of each order of events
	fetched int               // entries under way
	stored  *storage
	planes  map[health.Endpoint][]segment
	tickAt  time.Time
	orders  uint64
	moves   int           // specifiers for checkers
	notes   []log.Event   // of the current step
	told    int           // lines of the history of the log that this replica has
	joined  int           // sessions of checkers that the machine got
	losses  int           // checkers that it lost
	skew    time.Duration // of its wall clock

	clusters map[string]*catalog.Cluster
	awaits   bool // its sources have yet to answer
}

// storage is what a replica has on disk.
type storage struct {
	state  log.State
	cursor uint64
	told   int
}

// run starts a replica.
func (l *lab) run(id string) *process {
	l.serial++
	p := &process{lab: l, id: id, number: l.serial, latest: map[int]time.Time{}, planes: map[health.Endpoint][]segment{}, clusters: map[string]*catalog.Cluster{}}
	if before := l.processes[id]; before != nil {
		p.stored = before.stored
	} else {
		p.stored = &storage{state: log.State{TakenOver: map[string]bool{}}}
	}
	p.fetched, p.told = int(p.stored.cursor), p.stored.told
	p.replica = New(Options{
		ID: id, Process: p.number << 32, Timing: machine.Timing{Report: reportInterval, Grace: grace, Settle: settle},
		CommitInterval: 5 * time.Millisecond, MaxPayload: l.payload, MaxRecords: l.maximum,
	}, p.stored.state.Clone(), p.stored.cursor)
	p.replica.committer.patience = 500 * time.Millisecond
	l.processes[id] = p
	p.awaits = l.slow
	p.deliver()
	if l.slow {
		l.schedule(l.between(0, 10*time.Second), func() { p.awaits = false; p.deliver() })
	}
	p.step(Begun{})
	p.tick()
	p.fetch()
	for _, other := range l.running() {
		if other != p {
			l.connectLink(id, other.id)
		}
	}
	l.schedule(l.between(0, time.Second), l.log.elect)
	l.log.tellMembers()
	return p
}

// deliver gives the process the present clusters.
func (p *process) deliver() {
	if p.awaits {
		p.step(Local{machine.Delivered{Delivery: catalog.Delivery{Rules: rules, Answered: map[string]bool{}}}})
		return
	}
	d := catalog.Delivery{Rules: rules, Answered: map[string]bool{"local": true}, Complete: true}
	present := p.lab.clusters
	if variant := p.variants[p.id]; variant != nil {
		present = variant
	}
	for name := range p.clusters {
		if !slices.ContainsFunc(present, func(k *catalog.Cluster) bool { return k.Source.Name == name }) {
			delete(p.clusters, name)
			d.Removed = append(d.Removed, name)
		}
	}
	slices.Sort(d.Removed)
	for _, k := range present {
		if previous := p.clusters[k.Source.Name]; previous != k {
			d.Changed = append(d.Changed, catalog.Change{Cluster: k, Renewed: catalog.ChangedProbes(previous, k)})
			p.clusters[k.Source.Name] = k
		}
	}
	p.step(Local{machine.Delivered{Delivery: d}})
}

// setCluster replaces a cluster. Each process reads it in its time.
func (l *lab) setCluster(next *catalog.Cluster) {
	for i, k := range l.clusters {
		if k.Source.Name == next.Source.Name {
			l.clusters[i] = next
		}
	}
	for _, p := range l.running() {
		l.schedule(l.between(0, 3*time.Second), p.deliver)
	}
}

var rules = catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 3}})

// kill ends a replica. Its links and streams end, and its session some time later.
func (l *lab) kill(id string) {
	p := l.processes[id]
	p.ended = true
	delete(l.processes, id)
	for _, other := range l.running() {
		l.cutLink(linkKey(id, other.id))
	}
	for _, k := range slices.SortedFunc(maps.Values(l.checkers), func(a, b *simChecker) int { return cmp.Compare(a.ID, b.ID) }) {
		if k.process == p {
			k.lose()
		}
	}
	l.schedule(l.between(0, time.Second), func() {
		if l.log.leader == p {
			l.log.endEpoch()
		}
		l.log.tellMembers()
	})
	l.schedule(l.between(100*time.Millisecond, 5*time.Second), func() {
		l.processes[id] = p // for its storage
		l.run(id)
	})
}

// post lets an event reach the process, in order with other events of the same kind.
func (p *process) post(order int, after time.Duration, e Event) {
	due := p.now.Add(after)
	if due.Before(p.latest[order]) {
		due = p.latest[order]
	}
	p.latest[order] = due
	p.schedule(due.Sub(p.now), func() { p.step(e) })
}

// clock returns the time of the process. With wall clocks it has a monotonic part, and the skew of its machine.
func (p *process) clock() time.Time {
	if p.base.IsZero() {
		return p.now
	}
	return jumped(p, p.base.Add(p.now.Sub(start)), p.skew)
}

// step lets the replica handle an event, unless it is paused.
func (p *process) step(e Event) {
	switch {
	case p.ended:
	case p.paused:
		p.waiting = append(p.waiting, e)
	default:
		p.replica.Step(p.clock(), e, p.carryOut)
		for len(p.notes) > 0 {
			notes := p.notes
			p.notes = nil
			p.replica.Step(p.clock(), Noted{notes}, p.carryOut)
		}
		p.wake()
	}
}

// wake schedules the next tick.
func (p *process) wake() {
	due := p.now.Add(p.replica.Wait(p.clock()))
	if p.tickAt.IsZero() || due.Before(p.tickAt) {
		p.tickAt = due
		p.schedule(due.Sub(p.now), func() {
			if p.tickAt.Equal(due) {
				p.tick()
			}
		})
	}
}

func (p *process) tick() {
	p.tickAt = time.Time{}
	p.step(Tick{})
}

// pause stops a replica for a while.
func (p *process) pause(d time.Duration) {
	p.paused = true
	if d > time.Second {
		p.schedule(time.Second, func() {
			p.expired = p.paused
			p.log.tellMembers()
			if p.log.leader == p && p.paused {
				p.log.endEpoch()
			}
		})
	}
	p.schedule(d, func() {
		waiting := p.waiting
		p.paused, p.expired, p.waiting, p.tickAt = false, false, nil, time.Time{}
		p.log.tellMembers()
		for _, e := range waiting {
			p.step(e)
		}
		if !p.ended {
			p.tick()
		}
	})
}

// fetch reads the next entries of the log.
func (p *process) fetch() {
	for !p.cut && !p.log.away && p.fetched < len(p.log.entries) {
		e := p.log.entries[p.fetched]
		p.fetched++
		p.post(1, p.between(0, 30*time.Millisecond), e)
	}
}

func (p *process) carryOut(e Effect) {
	switch e := e.(type) {
	case Published:
		p.publish(e)
	case Stored:
		p.store(e)
	case Commit:
		p.commit(e)
	case Resign:
		if p.log.leader == p && p.log.epoch == e.Epoch {
			p.log.endEpoch()
		}
	case Send:
		p.send(e)
	case Assigned:
		p.moves++
		p.checkers[e.Checker].assign(p, e.Specifier)
	case OrderDone:
		o := p.lab.orders[e.ID]
		if o == nil || o.done {
			p.Errorf("order %v ends again", e.ID)
			return
		}
		o.done, o.err = true, e.Err
	case Decided:
		switch e := e.Effect.(type) {
		case machine.CheckerJoined:
			p.joined++
			p.note(log.CheckerJoined, &e.Checker)
		case machine.FleetChanged:
			for i := range e.Events {
				if v := &e.Events[i]; v.Kind == fleet.Lost {
					p.losses++
					p.note(log.CheckerLost, &health.Checker{ID: v.Checkers[0], Locality: v.Locality})
				}
			}
		}
	case Promoted:
		p.promoted++
	case Deposed:
		if p.deposed++; p.replica.won != nil {
			p.overflows++
		}
	case Faulted:
		p.Fatalf("%s: %v", p.id, e.Err)
	}
}

// publish notes the health that data planes get.
func (p *process) publish(c Published) {
	for _, h := range slices.Concat(c.Health, c.Withdrawn) {
		k, index := p.replica.Follower.Rulings.At(h.ID)
		if k == nil || index == catalog.None {
			continue
		}
		key := k.Checked.Key(index)
		if course := p.planes[key]; len(course) == 0 || course[len(course)-1].status != h.Status {
			p.planes[key] = append(course, segment{p.now, h.Status})
		}
	}
}

// store keeps the state, and checks that it is that of all replicas at the cursor. It checks that the entries tell
// the history of the log, and each line of it once.
func (p *process) store(e Stored) {
	for _, entry := range e.Entries {
		for _, line := range historyOf(entry) {
			if p.told == len(p.log.history) || p.log.history[p.told] != line {
				p.Fatalf("%s has %q as line %d of the history %q", p.id, line, p.told, p.log.history)
			}
			p.told++
		}
	}
	state := p.replica.Follower.State.Clone()
	if p.IntN(3) > 0 {
		p.stored = &storage{state, e.Cursor, p.told}
	}
	digest := digestOf(&state)
	if known, ok := p.digests[e.Cursor]; ok && known != digest {
		p.Fatalf("%s: the state at entry %d is\n%s\nand elsewhere\n%s", p.id, e.Cursor, digest, known)
	}
	p.digests[e.Cursor] = digest
}

// digestOf returns a state as text. Maps are in the order of their keys.
func digestOf(s *log.State) string {
	text := fmt.Sprint(s.Current, s.Plan, s.Clusters, s.Overrides, s.Voted, s.Trust, s.Established, s.Penalties, s.GivenBack, s.TakenOver, s.Attendance)
	for _, name := range slices.Sorted(maps.Keys(s.Trials)) {
		text += fmt.Sprint(name, *s.Trials[name])
	}
	if s.Freeze != nil {
		text += fmt.Sprint(*s.Freeze)
	}
	return text
}

// commit carries a commit to the log, which may answer late or not at all.
func (p *process) commit(c Commit) {
	p.schedule(p.between(0, 20*time.Millisecond), func() {
		if p.cut || p.log.away || p.ended {
			p.post(2, p.between(100*time.Millisecond, time.Second), Undecided{c.Epoch, c.Sequence})
			return
		}
		answer := p.log.commit(p, c)
		if p.IntN(20) == 0 {
			answer = Undecided{c.Epoch, c.Sequence}
		}
		p.post(2, p.between(0, 20*time.Millisecond), answer)
	})
}

// order gives the process an order of an operator.
func (p *process) order(e machine.Event) log.OrderID {
	p.orders++
	id := log.OrderID{Process: p.number, Number: p.orders}
	o := &simOrder{process: p, operator: log.Operator{Identity: fmt.Sprint("operator-", p.orders), Address: p.id, Time: p.now}}
	if note, ok := e.(*machine.Annotate); ok {
		o.event = &note.Event
	}
	p.lab.orders[id] = o
	p.step(Ordered{ID: id, Order: e, Operator: &o.operator})
	return id
}

// simLink is a connection between two replicas.
type simLink struct {
	number uint64
	open   bool
}

func linkKey(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// connectLink opens a link.
func (l *lab) connectLink(a, b string) {
	key := linkKey(a, b)
	if link := l.links[key]; link != nil && link.open {
		return
	}
	l.serial++
	link := &simLink{l.serial, true}
	l.links[key] = link
	for _, ends := range [][2]string{{a, b}, {b, a}} {
		if p := l.processes[ends[0]]; p != nil {
			p.post(3, l.between(0, 20*time.Millisecond), LinkOpened{ends[1], link.number})
			p.latest[1000+int(link.number)] = p.latest[3] // messages come later
		}
	}
}

// cutLink ends a link. Each side notices it in its time.
func (l *lab) cutLink(key [2]string) {
	link := l.links[key]
	if link == nil || !link.open {
		return
	}
	link.open = false
	for i, id := range key {
		if p := l.processes[id]; p != nil {
			p.post(3, l.between(0, time.Second), LinkClosed{key[1-i], link.number})
		}
	}
	l.schedule(l.between(10*time.Millisecond, 2*time.Second), func() {
		if l.links[key] == link && l.processes[key[0]] != nil && l.processes[key[1]] != nil {
			l.connectLink(key[0], key[1])
		}
	})
}

// send carries a message to another replica. A message on its way may outlive its link.
func (p *process) send(s Send) {
	link := p.links[linkKey(p.id, s.Replica)]
	if link == nil || link.number != s.Link || !link.open {
		return
	}
	delay := p.between(0, 50*time.Millisecond)
	if p.IntN(20) == 0 && !p.prompt {
		delay = p.between(0, 2*time.Second)
	}
	message := p.known(s.Message, s.Replica)
	p.schedule(0, func() {
		if to := p.processes[s.Replica]; to != nil && (p.drops == nil || !p.drops(message)) {
			to.post(1000+int(link.number), delay, Received{p.id, s.Link, message})
		}
		p.post(2000+int(link.number), p.between(0, 30*time.Millisecond), Sent{s.Replica, s.Link})
	})
}

// simChecker is an Envoy that checks.
type simChecker struct {
	*lab
	health.Checker
	home     string   // the replica that it is with at first
	process  *process // nil: it is not connected
	session  int
	spec     *specifier.Specifier
	fresh    bool // it has yet to report on spec
	reported map[health.EndpointID]health.Vote
	probes   map[string]probe // by cluster and address
	keys     []string         // of probes, by entry of spec
}

// probe is the check of an address, and when its first probe ends.
type probe struct {
	check string
	end   time.Time
}

// addChecker adds a checker of a zone.
func (l *lab) addChecker(id, zone, home string) {
	k := &simChecker{lab: l, home: home, probes: map[string]probe{}, Checker: health.Checker{
		ID: id, Version: "envoy/1.40.0", Locality: health.Locality{Region: "eu", Zone: zone},
		Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}},
	}}
	l.checkers[id] = k
	k.connect(home)
	var report func()
	report = func() {
		k.report()
		l.schedule(reportInterval, report)
	}
	l.schedule(l.between(0, reportInterval), report)
}

// connect opens a stream to a replica, or to another one if it does not run.
func (k *simChecker) connect(id string) {
	if k.process != nil {
		return
	}
	p := k.processes[id]
	if p == nil {
		running := slices.Sorted(maps.Keys(k.processes))
		if len(running) == 0 {
			k.schedule(time.Second, func() { k.connect(id) })
			return
		}
		p = k.processes[running[k.IntN(len(running))]]
	}
	k.session++
	k.process, k.spec, k.fresh, k.reported = p, nil, false, map[health.EndpointID]health.Vote{}
	p.step(Local{machine.Connected{Checker: k.Checker}})
}

// lose ends the stream. The checker connects again.
func (k *simChecker) lose() {
	p := k.process
	if p == nil {
		return
	}
	k.process = nil
	noticed := k.between(0, time.Second)
	if k.IntN(3) == 0 {
		noticed = k.between(0, 8*time.Second) // the stream is half open
	}
	k.schedule(noticed, func() {
		if k.process != p { // else a new stream has replaced it
			p.step(Local{machine.Disconnected{Checker: k.ID}})
		}
	})
	k.schedule(k.between(time.Second, 3*time.Second), func() {
		if running := slices.Sorted(maps.Keys(k.processes)); len(running) > 0 {
			k.connect(running[k.IntN(len(running))])
			return
		}
		k.connect("")
	})
}

// assign takes a specifier. New endpoints are reported UNHEALTHY without a code until their first probe ends.
func (k *simChecker) assign(p *process, s *specifier.Specifier) {
	if k.process != p {
		return
	}
	probes, keys := map[string]probe{}, []string{}
	for _, part := range s.Clusters {
		check := part.Head.String()
		for _, group := range part.Localities {
			for range group.Entries {
				key := part.Head.GetClusterName() + " " + s.Addresses[len(keys)]
				if probes[key] = k.probes[key]; probes[key].check != check {
					probes[key] = probe{check, k.now.Add(k.between(100*time.Millisecond, 2*time.Second))}
				}
				keys = append(keys, key)
			}
		}
	}
	k.spec, k.fresh, k.probes, k.keys = s, true, probes, keys
}

// report reports changed votes, or all that a new specifier asks for.
func (k *simChecker) report() {
	if k.process == nil || k.process.paused || k.spec == nil || k.IntN(20) == 0 {
		return
	}
	var votes []health.Vote
	for i, endpoint := range k.spec.Order {
		vote := health.Vote{Endpoint: endpoint, Status: health.Unhealthy}
		if !k.now.Before(k.probes[k.keys[i]].end) {
			if vote.Status = k.trueStatus(k.spec.Addresses[i]); !vote.Status.Up() {
				vote.HTTPStatusCode = http.StatusServiceUnavailable
			}
		}
		if before, ok := k.reported[endpoint]; k.fresh || !ok || before != vote {
			votes = append(votes, vote)
		}
		k.reported[endpoint] = vote
	}
	if k.fresh {
		k.fresh = false // the step may bring the next specifier
		k.process.step(Local{machine.Followed{Checker: k.ID, Specifier: k.spec}})
	}
	k.process.step(Local{machine.Reported{Checker: k.ID, Votes: votes}})
}

func (l *lab) trueStatus(address string) health.Status {
	if course := l.truth[address]; len(course) > 0 {
		return course[len(course)-1].status
	}
	return health.Healthy
}

// turn changes the true status of an address, unless it has changed lately.
func (l *lab) turn(address string) {
	course := l.truth[address]
	if n := len(course); n > 0 && l.now.Sub(course[n-1].begin) < 12*time.Second {
		return
	}
	next := health.Unhealthy
	if !l.trueStatus(address).Up() {
		next = health.Healthy
	}
	l.truth[address] = append(course, segment{l.now, next})
}
