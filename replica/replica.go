package replica

import (
	"fmt"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/log"
	"hdsd/log/batch"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/replica/clusters"
)

// Options are the parameters of a Replica.
type Options struct {
	ID             string
	Process        uint64 // a random number of this process
	Timing         machine.Timing
	CommitInterval time.Duration // least time between two commits
	MaxPayload     int           // bytes of a commit
	MaxRecords     int           // records that may wait for a commit; 0: a million
}

// Replica is one replica of a fleet of several. The package comment says who may call it.
type Replica struct {
	options  Options
	Follower *machine.Follower // what the data planes of this replica get

	// The log.
	position uint64 // sequence of the latest entry
	epoch    int64  // the latest one in the log or of a leader
	joiner   batch.Joiner
	fault    error // why this replica cannot read the log; nil: it can

	own   *clusters.Own // the clusters of this replica's sources
	begun bool          // the servers listen

	roster *roster
	orders orders
	links  map[string]*link
	leader leader
	view   view

	// Leading.
	won       *Won // nil: this replica does not lead
	round     uint64
	term      *term // nil until the log is read
	committer committer

	next  schedule
	yield func(Effect) // of the current step
}

// schedule has the times of due work.
type schedule struct {
	tick, forget time.Time
	report       time.Time // to the leader, which must hear of this replica
}

// link is a link to a replica.
type link struct {
	number   uint64
	busy     bool     // a message is on its way
	welcomed Term     // the other side knows that this replica leads
	welcome  *Welcome // of the other side, until etcd says that it leads; nil: none
}

// view is what etcd tells of the replicas.
type view struct {
	since  time.Time            // when etcd first told this process of them; zero: not yet
	absent map[string]time.Time // other replicas, and since when they have no session; zero: they have one
	leader string               // the latest one
	epoch  int64                // of the latest leader
}

// leader is the leader that this replica reports to.
type leader struct {
	term    Term
	replica string
	link    uint64 // 0: none any more
	full    bool   // the next report is a full one
}

// New returns a Replica that goes on with the stored state and cursor. It owns the state from then on.
func New(o Options, state log.State, cursor uint64) *Replica {
	if o.MaxRecords == 0 {
		o.MaxRecords = maxRecords
	}
	return &Replica{
		options: o, Follower: machine.NewFollower(state), position: cursor, own: clusters.NewOwn(),
		roster: newRoster(o.Process), links: map[string]*link{}, view: view{absent: map[string]time.Time{}},
		committer: committer{interval: o.CommitInterval, patience: commitPatience, limit: o.MaxPayload, max: o.MaxRecords},
	}
}

// Machine returns the Machine of a leader; nil if this replica does not lead.
func (r *Replica) Machine() *machine.Machine {
	if r.term == nil || !r.term.opened {
		return nil
	}
	return r.term.machine
}

// Step handles one event. It yields each effect as soon as the effect is certain.
func (r *Replica) Step(now time.Time, e Event, yield func(Effect)) {
	r.yield = yield
	if r.term != nil {
		r.term.yield = yield
	}
	e.handle(r, now)
	r.flush(now)
	r.yield = nil
}

// Wait returns the time to the next Tick.
func (r *Replica) Wait(now time.Time) time.Duration {
	next := r.next.tick
	if due, ok := r.committer.due(); r.won != nil && ok && due.Before(next) {
		next = due
	}
	return max(next.Sub(now), time.Millisecond)
}

func (Begun) handle(r *Replica, _ time.Time) { r.begun = true }

func (e Local) handle(r *Replica, now time.Time) {
	switch e := e.Event.(type) {
	case machine.Delivered:
		r.deliver(now, &e.Delivery)
	case machine.Answered:
		r.yield(Decided{machine.SourcesAnswered{}})
	default:
		r.roster.handle(now, e)
	}
}

// deliver applies a change of the clusters.
func (r *Replica) deliver(now time.Time, d *catalog.Delivery) {
	r.own.Deliver(d)
	r.Follower.Deliver(now, d, func(e machine.Effect) {
		switch e := e.(type) {
		case machine.Published:
			r.yield(Published(e))
		case machine.ClustersApplied:
			if r.Machine() == nil { // otherwise that has yet to apply them
				r.yield(Decided{e})
			}
		default:
			r.yield(Decided{e})
		}
	})
	if r.term != nil {
		r.term.union.OwnChanged(now, d)
		r.applyClusters(now)
	}
}

// applyClusters lets the Machine have the changes of the union of clusters.
func (r *Replica) applyClusters(now time.Time) {
	if !r.term.opened {
		return
	}
	if d := r.term.union.Next(r.knowsClusters(now)); d != nil {
		r.term.step(now, machine.Delivered{Delivery: *d})
	}
	if r.term.union.Due() {
		r.next.tick = now
	}
}

// Differences tells which replicas differ from the leader, which is this one, in the clusters of their sources, but for one
// source. It is empty if this replica does not lead.
func (r *Replica) Differences(without string) []clusters.Difference {
	if r.Machine() == nil {
		return nil
	}
	return r.term.union.Differences(without)
}

// knowsClusters reports whether each replica has told the leader its clusters, also those that have lost their session
// lately: their data planes may come to another replica. A process that runs for less time does not know which ones have.
func (r *Replica) knowsClusters(now time.Time) bool {
	switch {
	case now.Sub(r.term.started) >= clusters.Patience:
		return true
	case now.Sub(r.view.since) < clusters.Patience:
		return false
	}
	for replica, since := range r.view.absent {
		if !r.term.knows(replica) && (since.IsZero() || now.Sub(since) < clusters.Patience) {
			return false
		}
	}
	return true
}

func (e Tick) handle(r *Replica, now time.Time) {
	wait := r.reportInterval()
	if r.term != nil && !r.term.opened {
		r.openTerm(now)
		wait = min(wait, gatherPatience/4)
	}
	if r.Machine() != nil {
		r.term.receive(now, r.options.ID, &Report{Term: r.term.id, Sessions: r.roster.take(r.term.id)})
		r.beginTerm(now)
		r.term.union.Forget(now)
		r.applyClusters(now)
		r.term.tick(now, e.ReceivedUntil)
		wait = min(wait, r.term.machine.Wait())
	} else {
		r.yield(Decided{machine.TickHandled{}})
	}
	r.forget(now)
	if r.next.tick = now.Add(wait); r.Machine() != nil && r.term.union.Due() {
		r.next.tick = now
	}
	r.orders.end(now, r.position, r.yield)
	if l := r.links[r.leader.replica]; l != nil && l.number == r.leader.link && !l.busy {
		r.sendDueReport(now, l)
	}
}

// sendDueReport sends a report to the leader if none has been sent for long. Ticks come more often.
func (r *Replica) sendDueReport(now time.Time, l *link) {
	if wait := r.next.report.Sub(now); wait <= 0 || wait > r.reportInterval() { // the clock may have gone back
		r.sendReport(now, l)
	}
	if r.next.report.Before(r.next.tick) {
		r.next.tick = r.next.report
	}
}

// reportInterval returns the longest time between two reports to the leader, but for a slow link.
func (r *Replica) reportInterval() time.Duration { return r.options.Timing.Report / 2 }

// forget lets the store forget absent endpoints now and then.
func (r *Replica) forget(now time.Time) {
	if r.next.forget.IsZero() {
		r.next.forget = now.Add(machine.ForgetDelay)
	}
	if !now.Before(r.next.forget) && r.isComplete() {
		r.next.forget = now.Add(machine.ForgetInterval)
		r.yield(Decided{machine.ForgetDue{}})
	}
}

// isComplete reports whether all sources of this replica have told all of their clusters.
func (r *Replica) isComplete() bool { return r.own.Complete() }

func (e Ordered) handle(r *Replica, now time.Time) {
	if !r.orders.add(now, Order{e.ID, e.Order, e.Operator}) {
		r.yield(OrderDone{ID: e.ID, Err: ErrManyOrders})
	}
}

func (e Noted) handle(r *Replica, _ time.Time) {
	if r.Machine() != nil && len(e.Events) > 0 {
		r.term.entries = append(r.term.entries, &log.Entry{Events: e.Events})
	}
}

func (e Won) handle(r *Replica, now time.Time) {
	r.learn(e.Epoch)
	if e.Epoch < r.epoch {
		return // it is over
	}
	r.won, r.round = &e, 0
	if r.committer.begin(now, e.Epoch, e.Head); r.fault != nil {
		r.resign(r.fault)
	}
}

func (e Lost) handle(r *Replica, _ time.Time) {
	if r.won != nil && r.won.Epoch == e.Epoch {
		r.depose()
	}
}

// learn notes an epoch. A later one ends the own term.
func (r *Replica) learn(epoch int64) {
	r.epoch = max(r.epoch, epoch)
	if r.leader.term.Epoch < r.epoch {
		r.leader.link = 0 // it is deposed
	}
	if r.won != nil && r.won.Epoch < r.epoch {
		r.depose()
	}
}

// depose ends the own term. What it has decided and not committed is gone.
func (r *Replica) depose() {
	r.won = nil
	r.endTerm()
}

// endTerm ends the life of the Machine.
func (r *Replica) endTerm() {
	if r.Machine() != nil {
		r.yield(Deposed{r.term.id})
	}
	r.term = nil
}

// resign ends the own term because of an error.
func (r *Replica) resign(err error) {
	epoch := r.won.Epoch
	r.depose()
	r.yield(Resign{epoch, err})
}

// promote begins a term, when this replica has read the log to its end, and knows which others there are.
func (r *Replica) promote(now time.Time) {
	if r.won == nil || r.term != nil || r.fault != nil || r.view.since.IsZero() || !r.own.Delivered() || !r.begun || !r.committer.idle() || r.position+1 < r.committer.next {
		return
	}
	r.round++
	id, head := Term{r.won.Epoch, r.round}, r.committer.next-1
	r.committer.begin(now, id.Epoch, head)
	r.term = newTerm(now, id, head, r.options.Timing, clusters.NewUnion(r.options.ID, r.own), r.yield)
	r.leader = leader{term: id}
	r.orders.begin(id, head)
	r.own.Restart() // no leader hears of its changes any more
	r.next.tick = now
	r.openTerm(now)
}

// openTerm lets the Machine begin with the union of the clusters, when the replicas with a session have told
// theirs.
func (r *Replica) openTerm(now time.Time) {
	for replica, since := range r.view.absent {
		if since.IsZero() && !r.term.knows(replica) && now.Sub(r.term.started) < gatherPatience {
			return
		}
	}
	r.term.opened = true
	r.yield(Promoted{r.term.id})
	state := r.Follower.State.Clone()
	r.term.machine.Restore(&state)
	r.applyClusters(now)
	r.roster.markAll()
	r.term.receive(now, r.options.ID, &Report{Term: r.term.id, Full: true, Sessions: r.roster.take(r.term.id)})
	early := r.term.early
	r.term.early, r.term.parts = nil, 0
	for _, m := range early {
		r.receive(now, m.replica, m.report)
	}
	r.next.tick = now
}

// gatherPatience is the longest wait of a new leader for the clusters of the others. Decisions wait for
// it, so that no endpoint of another replica leaves its checkers and comes back.
const gatherPatience = time.Second

// beginTerm begins the time to settle, when the replicas with a session have reported, also those that lost it
// lately. The seats of their checkers are kept until then.
func (r *Replica) beginTerm(now time.Time) {
	if r.term.begun {
		return
	}
	for replica, since := range r.view.absent {
		if r.term.peers[replica] == nil && (since.IsZero() || now.Sub(since) < memberPatience) && now.Sub(r.term.started) < memberPatience {
			return
		}
	}
	r.term.begin(now)
}

func (e Members) handle(r *Replica, now time.Time) {
	if r.view.since.IsZero() {
		r.view.since = now
	}
	if e.Epoch != 0 {
		r.view.leader, r.view.epoch = e.Leader, e.Epoch
		r.join()
	}
	for replica, since := range r.view.absent {
		if present := slices.Contains(e.Replicas, replica); !present && since.IsZero() {
			r.view.absent[replica] = now
		} else if !present && now.Sub(since) >= clusters.Patience {
			delete(r.view.absent, replica)
		}
	}
	for _, replica := range e.Replicas {
		if replica != r.options.ID {
			r.view.absent[replica] = time.Time{}
		}
	}
}

// memberPatience is the longest wait of a new leader for the first report of another replica.
const memberPatience = 5 * time.Second

// hear applies a report of another replica to the own term.
func (r *Replica) hear(now time.Time, from string, m *Report) {
	t := r.term
	if m.Clusters != nil {
		delete(t.untold, from)
		t.union.Apply(now, from, m.Clusters)
	} else if m.Full {
		t.untold[from] = true
		t.union.Lose(now, from) // what it told when it ran another release
	}
	if !t.opened {
		if l := r.links[from]; !t.keepEarly(from, m) && l != nil {
			l.welcomed = Term{} // it tells everything again
		}
		r.openTerm(now)
		return
	}
	r.applyClusters(now)
	r.receive(now, from, m)
}

// receive applies a report of another replica without its clusters. If a full one is needed first, it asks for that.
func (r *Replica) receive(now time.Time, from string, m *Report) {
	if l := r.links[from]; !r.term.receive(now, from, m) && l != nil {
		l.welcomed = Term{}
	}
}

func (e Read) handle(r *Replica, now time.Time) {
	if r.fault != nil {
		return
	}
	if e.Sequence != r.position+1 {
		r.stop(fmt.Errorf("entry %d of the log follows entry %d", e.Sequence, r.position))
		return
	}
	r.learn(e.Epoch)
	entries, err := r.joiner.Add(e.Payload)
	if err != nil {
		r.stop(fmt.Errorf("entry %d of the log: %w", e.Sequence, err))
		return
	}
	r.position = e.Sequence
	for _, entry := range entries {
		changes := r.apply(now, entry)
		for i := range changes {
			r.yield(Published{&changes[i]})
		}
	}
	if !r.joiner.Unfinished() {
		r.yield(Stored{entries, e.Sequence, e.Digest})
	}
	r.orders.end(now, r.position, r.yield)
}

// apply applies an entry of the log, which may carry out an order of this replica.
func (r *Replica) apply(now time.Time, e *log.Entry) []publish.Change {
	if order := r.orders.read(e); order != nil {
		return r.Follower.FollowOrder(now, e, order)
	}
	return r.Follower.Follow(now, e)
}

// stop ends the following of a log that the replica cannot read.
func (r *Replica) stop(err error) {
	r.fault = err
	r.yield(Faulted{err})
	if r.won != nil {
		r.resign(err)
	}
}

func (e LogEnded) handle(r *Replica, _ time.Time) {
	if r.fault == nil || e.After == r.position {
		r.stop(e.Err)
	}
}

func (e LogResumed) handle(r *Replica, _ time.Time) {
	if r.fault != nil && e.After == r.position { // otherwise it cannot read an entry
		r.epoch, r.fault = 0, nil
		r.yield(Recovered{})
		r.join()
	}
}

func (e Committed) handle(r *Replica, now time.Time) {
	r.committer.committed(now, e.Epoch, e.Sequence)
}

func (e Undecided) handle(r *Replica, _ time.Time) { r.committer.undecided(e.Epoch, e.Sequence) }

func (e Refused) handle(r *Replica, _ time.Time) {
	if r.won != nil && r.committer.awaits(e.Epoch, e.Sequence) {
		r.resign(e.Err)
	}
}
