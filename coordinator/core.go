package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/query"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/machine/recording"
)

// checkerServer sends specifiers to checkers.
type checkerServer interface {
	Assign(id string, s *specifier.Specifier)
}

// present is the Machine that observers and queries read: the one that decides, or the view of a replica that
// follows.
type present struct{ *machine.Machine }

// core runs the machine on a goroutine of its own, and hands its effects to the observers. All methods run
// on that goroutine, except those of the mailbox.
type core struct {
	*mailbox
	*present
	replication *replication // nil: the Machine decides alone

	// Set once.
	log     zerolog.Logger
	hds     checkerServer
	history historyStore
	metrics *metrics

	publisher publisher
	chronicle chronicle
	recorder  recorder
	eventLog  eventLog
	alarms    alarms
	snapshots *query.Snapshots // copies of the state for queries
	names     outsideNames
	observers []observer
	yield     func(machine.Effect) // the method carryOut

	current   currentStep
	onStep    func(time.Duration) // takes the duration of each event and tick; may be nil
	recording *recording.Encoder  // records each event; nil: no recording
	tape      *tape               // the file of the recording; nil: no recording
}

// currentStep holds the times of the current step.
type currentStep struct {
	now     time.Time // of the event
	resumed time.Time // end of the latest effect, or the beginning of the step
}

// observer carries out effects, or records them. It never waits.
type observer interface {
	observe(now time.Time, e machine.Effect)
}

func newCore(t machine.Timing, log zerolog.Logger, m *metrics, planes resourceServer, history historyStore) *core {
	c := &core{
		mailbox: newMailbox(m.mailboxDelay), present: &present{machine.New(t)}, log: log, metrics: m, history: history,
		publisher: publisher{planes: planes}, snapshots: query.NewSnapshots(),
	}
	c.chronicle = chronicle{history}
	c.recorder = recorder{history: history, present: c.present}
	c.eventLog = newEventLog(log, c.present, &c.names)
	c.alarms = newAlarms(log, &m.states, view{c}, &c.names)
	m.states.series.outside = c.names.outside
	m.present = c.present
	c.yield = c.carryOut
	c.observers = []observer{&c.names, specifierSender{c}, &c.publisher, &c.chronicle, &c.recorder, &c.eventLog, m, &c.alarms, snapshotMarker{c}}
	return c
}

// restore takes over the stored state, before the first event. No seat moves until hdsd has settled. A replica has
// the state already.
func (c *core) restore(s log.State) {
	if c.replication == nil {
		c.Restore(&s)
	}
	c.publisher.restore(&s)
	c.eventLog.restored(&s)
	c.metrics.restored(&s)
}

// run handles events and ticks until stop is closed.
func (c *core) run(stop <-chan struct{}) {
	defer close(c.done)
	defer c.tape.finish(c.recording)
	timer := time.NewTimer(0)
	defer timer.Stop()
	take := func(m message) {
		start := time.Now()
		c.handle(start, &m)
		c.measure(start)
	}
	for batch, ahead := 0, 0; ; {
		if ahead < mostAhead && len(c.entries) > 0 {
			ahead++
			take(<-c.entries)
			continue
		}
		ahead = 0
		select {
		case <-stop:
			c.end()
			return
		case next := <-c.entries:
			take(next)
			continue
		case next := <-c.events:
			c.latestPost = next.posted
			take(next)
			// A tick may find a checker late, so it comes after the events in the mailbox.
			if batch++; batch < mailboxSize && len(c.events) > 0 {
				continue
			}
		case <-c.snapshots.Due():
			start := time.Now()
			c.updateSnapshot()
			c.measure(start)
			continue
		case <-timer.C:
		}
		batch = 0
		start := time.Now()
		c.step(start, machine.Tick{ReceivedUntil: c.receivedUntil(start)})
		timer.Reset(c.wait(time.Now()))
		c.measure(start)
	}
}

// mostAhead is the number of entries that come before an event.
const mostAhead = 64

// wait returns the time to the next tick.
func (c *core) wait(now time.Time) time.Duration {
	if c.replication != nil {
		return c.replication.Wait(now)
	}
	return c.Wait()
}

// end stores the remaining state of the machine. That of replicas is in their log.
func (c *core) end() {
	if c.replication == nil {
		c.history.Apply(c.Unlogged(time.Now()))
	}
}

// updateSnapshot continues the snapshot for the waiting queries.
func (c *core) updateSnapshot() {
	for _, name := range c.Aggregator.TakeChanged() {
		c.snapshots.Change(name)
	}
	c.snapshots.Step(view{c})
}

// measure reports the time since start to onStep.
func (c *core) measure(start time.Time) {
	if c.onStep != nil {
		c.onStep(time.Since(start))
	}
}

// handle handles a posted event.
func (c *core) handle(now time.Time, m *message) {
	if m.pending != nil {
		m.pending.Store(false)
	}
	c.delay.Observe(now.Sub(m.posted).Seconds())
	if m.event != nil {
		c.step(now, m.event)
	}
	if m.shared != nil {
		c.stepReplica(now, m.shared)
	}
	if r, ok := m.event.(machine.Reported); ok && len(r.Votes) > 0 {
		c.metrics.votes.delay.Observe(time.Since(m.posted).Seconds())
	}
	if m.done != nil {
		m.done(now)
	}
}

// step lets the machine handle an event, and carries out the effects.
func (c *core) step(now time.Time, e machine.Event) {
	if c.replication != nil {
		c.stepReplica(now, replicaEvent(e))
		return
	}
	c.current = currentStep{now, time.Now()}
	c.recording.Begin(now, e)
	c.Step(now, e, c.yield)
	c.recording.End()
}

// carryOut hands an effect to all observers.
func (c *core) carryOut(e machine.Effect) {
	if f, ok := e.(machine.FleetChanged); ok && f.Planned {
		c.metrics.plan.duration.Observe(time.Since(c.current.resumed).Seconds())
	}
	for _, o := range c.observers {
		o.observe(c.current.now, e)
	}
	c.recording.Effect(e)
	c.current.resumed = time.Now()
}

// specifierSender sends specifiers to checkers.
type specifierSender struct{ core *core }

func (s specifierSender) observe(_ time.Time, e machine.Effect) {
	if e, ok := e.(machine.SpecifierMade); ok {
		s.core.hds.Assign(e.Checker, e.Specifier)
	}
}

// snapshotMarker marks the changed clusters, which the next snapshot copies again.
type snapshotMarker struct{ *core }

func (s snapshotMarker) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.ClustersApplied:
		for _, name := range e.Removed {
			s.snapshots.Change(name)
		}
		for _, k := range e.Changed {
			s.snapshots.Change(k.Source.Name)
		}
	case machine.EndpointsChanged:
		s.snapshots.Change(e.Cluster)
	case machine.FleetChanged:
		for _, ids := range [...][]health.EndpointID{e.Stranded, e.Checkable} {
			for _, id := range ids {
				if k, _ := s.Rulings.At(id); k != nil {
					s.snapshots.Change(k.Source.Name)
				}
			}
		}
	case machine.TrialsChanged:
		for i := range e.Events {
			s.snapshots.Change(e.Events[i].Cluster)
		}
	case machine.Logged:
		for i := range e.Transitions {
			s.snapshots.Change(e.Transitions[i].Endpoint.Cluster)
		}
	}
}
