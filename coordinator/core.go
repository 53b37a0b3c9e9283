package coordinator

import (
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/query"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/machine/recording"
	"hdsd/store"
)

// checkerServer sends specifiers to checkers.
type checkerServer interface {
	Assign(id string, s *specifier.Specifier)
}

// core is the machine on a goroutine of its own, with the observers that carry out its effects. All
// methods run on that goroutine, apart from those of the mailbox.
type core struct {
	*mailbox
	*machine.Machine

	// Set once.
	log     zerolog.Logger
	hds     checkerServer
	history historian
	metrics *metrics

	publisher publisher
	recorder  recorder
	eventLog  eventLog
	alarms    alarms           // what is wrong as a whole
	snapshots *query.Snapshots // what queries see
	outside   outsideNames
	observers []observer
	yield     func(machine.Effect) // carryOut

	present   present
	took      func(time.Duration) // called with how long each event and tick took; nil: nobody asks
	recording *recording.Encoder  // writes down each event; nil: nothing does
	tape      *tape               // takes what it writes; nil: nothing does
}

// present is the step that the machine is about.
type present struct {
	now     time.Time // of the event
	resumed time.Time // when the machine went on after the latest effect
}

// observer carries out its part of effects, or takes note of them. It never waits.
type observer interface {
	observe(now time.Time, e machine.Effect)
}

func newCore(t machine.Timing, log zerolog.Logger, m *metrics, planes resourceServer, history historian) *core {
	c := &core{
		mailbox: newMailbox(m.waiting), Machine: machine.New(t), log: log, metrics: m, history: history,
		publisher: publisher{planes: planes}, snapshots: query.NewSnapshots(),
	}
	c.recorder = recorder{history: history, rooms: c.Machine}
	c.eventLog = newEventLog(log, c.Machine, &c.outside)
	c.alarms = newAlarms(log, &m.states, view{c}, &c.outside)
	m.states.series.outside = c.outside.of
	m.rooms = c.Machine
	c.yield = c.carryOut
	c.observers = []observer{&c.outside, sender{c}, &c.publisher, chronicle{history}, &c.recorder, &c.eventLog, m, &c.alarms, touches{c}}
	return c
}

// restore takes over what the store has, before the first event. No seat moves until hdsd
// has settled.
func (c *core) restore(s store.State) {
	c.Restore(&s)
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
	for handled := 0; ; {
		select {
		case <-stop:
			c.end()
			return
		case next := <-c.events:
			began := time.Now()
			c.open(began, &next)
			c.measure(began)
			// Events that have arrived come before the tick, which may find someone late.
			if handled++; handled < mailboxSize && len(c.events) > 0 {
				continue
			}
		case <-c.snapshots.Due():
			began := time.Now()
			c.leaveBehind()
			c.measure(began)
			continue
		case <-timer.C:
		}
		handled = 0
		began := time.Now()
		c.step(began, machine.Tick{Heard: c.heardUntil(began)})
		timer.Reset(c.Wait())
		c.measure(began)
	}
}

// end stores what no effect has stored.
func (c *core) end() {
	plan, penalties := c.Unstored(time.Now())
	if len(plan) > 0 {
		c.history.SavePlan(plan)
	}
	if len(penalties) > 0 {
		c.history.SavePenalties(penalties)
	}
}

// leaveBehind goes on with the snapshot that queries wait for.
func (c *core) leaveBehind() {
	for _, name := range c.Judge.TakeChanged() {
		c.snapshots.Change(name)
	}
	c.snapshots.Step(view{c})
}

// measure says how long something took.
func (c *core) measure(began time.Time) {
	if c.took != nil {
		c.took(time.Since(began))
	}
}

// open handles an event that was posted.
func (c *core) open(now time.Time, l *letter) {
	c.heard = l.posted
	if l.waits != nil {
		l.waits.Store(false)
	}
	c.waited.Observe(now.Sub(l.posted).Seconds())
	if l.event != nil {
		c.step(now, l.event)
	}
	if r, ok := l.event.(machine.Reported); ok && len(r.Votes) > 0 {
		c.metrics.votes.delay.Observe(time.Since(l.posted).Seconds())
	}
	if l.handled != nil {
		l.handled(now)
	}
}

// step has the machine handle an event, and its effects carried out.
func (c *core) step(now time.Time, e machine.Event) {
	c.recording.Begin(now, e)
	c.present = present{now, time.Now()}
	c.Step(now, e, c.yield)
	c.recording.End()
}

// carryOut has all observers carry out an effect.
func (c *core) carryOut(e machine.Effect) {
	if fleet, ok := e.(machine.FleetChanged); ok && fleet.Planned {
		c.metrics.plan.took.Observe(time.Since(c.present.resumed).Seconds())
	}
	for _, o := range c.observers {
		o.observe(c.present.now, e)
	}
	c.recording.Effect(e)
	c.present.resumed = time.Now()
}

// sender sends specifiers to checkers.
type sender struct{ core *core }

func (s sender) observe(_ time.Time, e machine.Effect) {
	if e, ok := e.(machine.Specified); ok {
		s.core.hds.Assign(e.Checker, e.Specifier)
	}
}

// touches takes note of the clusters that snapshots have to copy again.
type touches struct{ *core }

func (t touches) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.ClustersChanged:
		for _, name := range e.Removed {
			t.snapshots.Change(name)
		}
		for _, k := range e.Changed {
			t.snapshots.Change(k.Source.Name)
		}
	case machine.EndpointsChanged:
		t.snapshots.Change(e.Cluster)
	case machine.FleetChanged:
		for _, ids := range [...][]health.EndpointID{e.Stranded, e.Checkable} {
			for _, id := range ids {
				if k, _ := t.Rulings.At(id); k != nil {
					t.snapshots.Change(k.Source.Name)
				}
			}
		}
	case machine.TrialsChanged:
		for i := range e.Events {
			t.snapshots.Change(e.Events[i].Cluster)
		}
	case machine.Decided:
		for i := range e.Transitions {
			t.snapshots.Change(e.Transitions[i].Endpoint.Cluster)
		}
	}
}
