package coordinator

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/log"
	"hdsd/machine"
	"hdsd/relay"
	"hdsd/replica"
	"hdsd/replica/clusters"
	"hdsd/ruling"
	"hdsd/store"
)

// replicaLog carries out the effects of a replica on the log. Its methods do not wait.
type replicaLog interface {
	Commit(replica.Commit)
	Resign(replica.Resign)
}

// replicaLinks sends messages to other replicas. Its methods do not wait.
type replicaLinks interface {
	Send(replica.Send)
}

// followingStore stores entries of the log of several replicas, with the cursor behind them.
type followingStore interface {
	Follow(entries []*log.Entry, cursor uint64, r store.Records)
}

// replication is what the core has more if it is one replica of several. It belongs to the goroutine of the core, but
// for state.
type replication struct {
	*replica.Replica
	timing machine.Timing
	log    replicaLog
	links  replicaLinks
	store  followingStore
	events *sharedEvents

	id      string // of this replica
	process uint64
	number  uint64 // of the latest order
	waiting map[log.OrderID]func(error)
	yield   func(replica.Effect) // the method carryOutReplica of the core
	noted   time.Time            // when it last looked at the differences

	state atomic.Pointer[replicaState]
}

// replicaState is the state of the replica that other goroutines read.
type replicaState struct {
	leading  bool
	position uint64    // latest entry that it has published and given to the store
	time     time.Time // when it did
	fault    error     // why it cannot read the log; nil: it can

	differences []clusters.Difference // between the leader, which is this replica, and others
}

func (r *replication) change(change func(*replicaState)) {
	next := *r.state.Load()
	change(&next)
	r.state.Store(&next)
}

// leads reports whether this replica leads. Any goroutine may call it.
func (r *replication) leads() bool { return r.state.Load().leading }

// join makes the core one replica of several, before the first event.
func (c *core) join(o replica.Options, state log.State, cursor uint64, s followingStore, l replicaLog, links replicaLinks) {
	r := &replication{
		Replica: replica.New(o, state, cursor), timing: o.Timing, store: s, log: l, links: links, id: o.ID, process: o.Process,
		events: &sharedEvents{eventStore: c.history}, waiting: map[log.OrderID]func(error){}, yield: c.carryOutReplica,
	}
	r.state.Store(&replicaState{position: cursor})
	c.replication, c.recorder.followed, c.chronicle.history = r, &r.Follower.State, r.events
	c.readFollower()
}

// follows reports whether another replica decides. Any goroutine may call it.
func (c *core) follows() bool { return c.replication != nil && !c.replication.leads() }

// committed returns the rulings that the log of several replicas has; those of a coordinator alone are all.
func (c *core) committed() *ruling.Table {
	if c.replication != nil {
		return c.replication.Follower.Rulings
	}
	return c.Rulings
}

// replicaEvent returns an event of this process for the replica.
func replicaEvent(e machine.Event) replica.Event {
	switch e := e.(type) {
	case machine.Begun:
		return replica.Begun{}
	case machine.Tick:
		return replica.Tick(e)
	}
	return replica.Local{Event: e}
}

// postShared queues an event of a link, or of the log with the queue entries, unless the core has stopped. It may
// wait.
func (m *mailbox) postShared(queue chan<- message, e replica.Event) {
	select {
	case queue <- message{shared: e, posted: time.Now()}:
	case <-m.done:
	}
}

// stepReplica lets the replica handle an event, and carries out the effects.
func (c *core) stepReplica(now time.Time, e replica.Event) {
	c.current = currentStep{now, time.Now()}
	r := c.replication
	r.Step(now, e, r.yield)
	if _, ok := e.(replica.Tick); ok && (!r.leads() || now.Sub(r.noted) >= differenceInterval) {
		r.noted = now
		r.noteDifferences()
	}
	if found := r.events.takeFound(); len(found) > 0 {
		r.Step(now, replica.Noted{Events: found}, r.yield)
	}
}

// differenceInterval is the least time between two looks of a leader at the clusters that differ: there may be many.
const differenceInterval = time.Second

// noteDifferences notes which replicas have other clusters. The clients of the relay differ by nature.
func (r *replication) noteDifferences() {
	latest, known := r.Differences(relay.SourceName), r.state.Load().differences
	if len(latest) != len(known) || len(latest) > 0 && &latest[0] != &known[0] {
		r.change(func(s *replicaState) { s.differences = latest })
	}
}

// carryOutReplica carries out an effect of the replica.
func (c *core) carryOutReplica(e replica.Effect) {
	r := c.replication
	switch e := e.(type) {
	case replica.Published:
		c.carryOut(machine.Published(e))
	case replica.Stored:
		c.keep(&e)
	case replica.Decided:
		c.carryOutDecided(e.Effect)
	case replica.Assigned:
		c.carryOut(machine.SpecifierMade(e))
	case replica.Commit:
		r.log.Commit(e)
	case replica.Resign:
		if e.Err != nil {
			c.log.Error().Str("event", "replica_resigned").Int64("epoch", e.Epoch).Err(e.Err).Msg("this replica does not lead any more: another one may")
		}
		r.log.Resign(e)
	case replica.Send:
		r.links.Send(e)
	case replica.OrderDone:
		if done := r.waiting[e.ID]; done != nil {
			delete(r.waiting, e.ID)
			done(e.Err)
		}
	case replica.Promoted:
		r.change(func(s *replicaState) { s.leading = true })
		r.events.present = maps.Clone(r.Follower.State.Attendance)
		c.switchMachine(r.Machine())
		c.log.Info().Str("event", "replica_leads").Int64("epoch", e.Term.Epoch).Uint64("round", e.Term.Round).
			Msg("this replica leads: it plans and decides for all")
	case replica.Deposed:
		r.change(func(s *replicaState) { s.leading = false })
		c.switchMachine(r.Follower.View(r.timing))
		c.metrics.reset()
		c.log.Info().Str("event", "replica_follows").Int64("epoch", e.Term.Epoch).Msg("this replica does not lead any more")
	case replica.Faulted:
		c.log.Error().Str("event", "replica_fault").Err(e.Err).Msg("this replica cannot follow the log: it publishes what it has read, and looks at the log again now and then")
		r.change(func(s *replicaState) { s.fault = e.Err })
	case replica.Recovered:
		c.log.Info().Str("event", "replica_recovered").Msg("this replica follows the log again")
		r.change(func(s *replicaState) { s.fault = nil })
	}
}

// carryOutDecided hands an effect of the Machine to the observers. The events that it leads to go into the log, so
// that the histories of all replicas have them. Each replica has events of its own about its clusters.
func (c *core) carryOutDecided(e machine.Effect) {
	if _, ok := e.(machine.ClustersApplied); ok && c.follows() {
		c.readFollower() // the rules may have changed
	}
	_, own := e.(machine.ClustersChanged)
	c.replication.events.finding = !own && c.replication.leads()
	c.carryOut(e)
	c.replication.events.finding = false
}

// readFollower makes the state of the Follower that to read.
func (c *core) readFollower() { c.Machine = c.replication.Follower.View(c.replication.timing) }

// switchMachine makes another Machine that to read, at the beginning or the end of a term.
func (c *core) switchMachine(m *machine.Machine) {
	c.Machine = m
	c.alarms.reset()
	for _, name := range m.Rulings.Names() {
		c.snapshots.Change(name)
	}
	for _, name := range c.replication.Follower.Rulings.Names() {
		c.snapshots.Change(name)
	}
}

// keep gives entries of the log to the observers and to the store.
func (c *core) keep(e *replica.Stored) {
	r := c.replication
	records := store.Records{Digest: e.Digest}
	r.events.gathering = true
	for _, entry := range e.Entries {
		c.carryOut(machine.Logged{Entry: entry})
		records.Audit = append(records.Audit, c.names.auditOf(entry)...)
	}
	records.Events = r.events.takeGathered()
	for i := range records.Audit {
		logAudit(c.log, &records.Audit[i])
	}
	r.store.Follow(e.Entries, e.Cursor, records)
	for _, entry := range e.Entries {
		c.recorder.tell(entry)
	}
	r.change(func(s *replicaState) { s.position, s.time = e.Cursor, c.current.now })
}

// order carries out an order of an operator on all replicas, and waits until the log has it. Then it calls
// record with the time, on the goroutine of the core. It runs on the goroutine of its caller. After errUndecided and an
// error of ctx, the order may still be carried out: the caller must not read the outcome.
func (c *core) order(ctx context.Context, order machine.Event, record func(now time.Time) error) error {
	ended := make(chan error, 1)
	c.send(message{done: func(now time.Time) {
		r := c.replication
		r.number++
		id := log.OrderID{Process: r.process, Number: r.number}
		r.waiting[id] = func(err error) {
			if err == nil {
				err = record(c.current.now)
			}
			ended <- orderError(err)
		}
		c.stepReplica(now, replica.Ordered{ID: id, Order: order, Operator: operatorOf(ctx, now)})
	}})
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return errUndecided
	case <-c.done:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logPatience is how long an operator waits for the log. An order without a leader ends before.
const logPatience = 8 * time.Second

var errUndecided = status.Errorf(codes.Unavailable, "the log has not taken the order within %v: it may still be carried out; see attention, and what is in force before you repeat it", logPatience)

// orderError returns the error of an order with the code for clients.
func orderError(err error) error {
	switch {
	case errors.Is(err, replica.ErrNoLeader), errors.Is(err, replica.ErrLeaderChanged):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, replica.ErrManyOrders):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, machine.ErrTrustFull):
		return trustFull()
	}
	return refusal(err)
}
