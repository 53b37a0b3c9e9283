package aggregate

import (
	"math"
	"time"

	"hdsd/health"
)

// Options are the parameters of judgement. A zero field means its default.
type Options struct {
	// Staleness is how long a checker may be silent before its votes no
	// longer count. Default: DefaultStaleness of reports each second.
	Staleness time.Duration

	// AwaitFor is how long a voter that has nothing to say yet is awaited: a
	// checker after a start, after it connected, or after it fell silent.
	// While it is awaited, nothing changes that its vote could prevent.
	// It should cover a reconnection and two reports. Default: 5 s.
	AwaitFor time.Duration

	// Doubt says when a checker or a path is not believed.
	Doubt Doubt

	// ZoneViews asks for Effects.ZoneViews.
	ZoneViews bool
}

// DefaultStaleness is the staleness that goes with reports every interval: two
// intervals and a half, so that one late report is no silence, and at least
// two seconds, so that a pause of either process is none.
func DefaultStaleness(interval time.Duration) time.Duration {
	return max(interval*5/2, 2*time.Second)
}

func (o Options) withDefaults() Options {
	if o.Staleness <= 0 {
		o.Staleness = DefaultStaleness(time.Second)
	}
	if o.AwaitFor <= 0 {
		o.AwaitFor = 5 * time.Second
	}
	o.Doubt = o.Doubt.WithDefaults()
	return o
}

// Timing says how an endpoint is checked, as far as judging needs it.
type Timing struct {
	Interval, Timeout, InitialJitter time.Duration
	UnhealthyThreshold               uint32
	ReportInterval                   time.Duration
}

// Endpoint is an endpoint to judge.
type Endpoint struct {
	ID      health.EndpointID // dense: memory goes with the highest
	Timing  Timing
	Rule    Rule
	Zone    health.Locality // where it is; of no zone if region and zone are empty
	Cluster string
}

// Change is a verdict that became another.
type Change struct {
	Endpoint     health.EndpointID
	From, To     health.Status
	Reason       string
	Observations []health.Observation
}

// Aggregator holds the votes and the verdicts. See the package's comment for
// who may call it.
type Aggregator struct {
	options   Options
	clock     clock
	policies  pool[terms, policy]
	classes   []BeliefLimits // numbered
	clusters  pool[string, cluster]
	endpoints []endpoint // by EndpointID
	seats     seats
	checkers  checkers
	deadlines deadlines
	dirty     []health.EndpointID // to decide anew at the next flush
	changes   []Change            // room for those of a flush

	zones           zones
	stirred         bool             // a checker lost its stream, came back, moved or went
	paths           map[path]*record // those with votes
	cuts            int              // paths that are doubted
	touchedCheckers []station        // whose record changed
	touchedPaths    []path
	doubtedCheckers []station // reviewed just now
	doubtedPaths    []path
	beliefs         []belief // of compare, for one endpoint
	words           map[string]word

	flaps  map[health.EndpointID]*flap // of those that went down lately, where that is damped
	damped int                         // held down
	unseen int                         // endpoints that are dark
	asking []uint32                    // clusters with contested downs in this flush

	dissents map[health.EndpointID][]dissent // of zones, where they are asked for

	effects Effects // not yet handed over
}

// endpoint is what is kept of one endpoint.
type endpoint struct {
	since    int64  // wall clock, Unix nanoseconds; never where there was no verdict
	start    uint32 // its first seat
	until    uint32 // low bits of the tick that ends settling
	policy   uint32 // number of it
	cluster  uint32 // number of it
	patience uint32 // milliseconds spent of it; while it is spending, low bits of the tick of the time watched at which nothing is left
	due      uint32 // low bits of the tick of the deadline for that
	zone     uint32 // number of its zone
	count    uint8  // its seats
	status   health.Status
	flags    uint16
}

const (
	known      uint16 = 1 << iota // between Set and Remove
	dirty                         // listed in Aggregator.dirty
	dark                          // no vote counted when it was last decided
	settling                      // seen again after dark: the absent are awaited once more
	hesitating                    // about to go down against the word of a checker in its own zone, or by one voter alone
	hesitated                     // has been so for long enough
	flapping                      // went down lately, where that is damped
	restrained                    // its down waits in a mass failure
	failing                       // most votes that count say down
	spending                      // its verdict waits for somebody
	timed                         // and there is a deadline for it
	exhausted                     // it has waited for long enough
)

const never = math.MinInt64

// New gives an aggregator without endpoints.
func New(o Options) *Aggregator {
	a := &Aggregator{
		options:   o.withDefaults(),
		classes:   []BeliefLimits{{}},
		checkers:  checkers{ids: map[string]uint32{}},
		deadlines: deadlines{due: map[tick][]pair{}},
		zones:     newZones(),
		paths:     map[path]*record{},
	}
	a.watchFor()
	return a
}

// Configure changes the parameters. What is already running ends as it was
// to end; what begins afterwards follows o.
func (a *Aggregator) Configure(o Options) {
	before := a.options.Doubt
	defer a.watchFor()
	if a.options = o.withDefaults(); a.options.Doubt != before {
		a.touchAll()
	}
}

// Set makes an endpoint known, or changes how it is checked. An endpoint that
// is new starts with its last known verdict, or UNKNOWN when last is zero; for
// one that is known already, last is ignored and its votes stay as they are;
// under another rule it is decided anew.
func (a *Aggregator) Set(e Endpoint, last health.Verdict) {
	for int(e.ID) >= len(a.endpoints) {
		a.endpoints = append(a.endpoints, endpoint{})
	}
	x, t := &a.endpoints[e.ID], termsOf(&e)
	if x.flags&known == 0 {
		*x = endpoint{since: never, flags: x.flags | known, status: last.Status}
		a.darken(x, true)
		a.enlist(x, &e, &t)
		if !last.Since.IsZero() {
			x.since = last.Since.UnixNano()
		}
		if e.Rule.Unobserved != Hold {
			a.settle(e.ID, x) // whoever is to check it has that long to say so
			a.mark(e.ID, x)
		}
	} else {
		if a.clusters.all[x.cluster].key != e.Cluster {
			a.quit(e.ID, x)
			a.join(x, e.Cluster)
		}
		if a.policyOf(x).terms != t {
			a.adopt(e.ID, x, &t)
		}
	}
	a.place(e.ID, x, e.Zone)
}

// Remove forgets an endpoint, its verdict and its votes.
func (a *Aggregator) Remove(id health.EndpointID) {
	e := a.known(id)
	if e == nil {
		return
	}
	for e.count > 0 {
		a.vacate(e, int(e.count)-1)
	}
	a.delist(id, e)
	a.darken(e, false)
	a.zones.leave(e.zone)
	*e = endpoint{flags: e.flags & dirty}
	if a.dissents[id] != nil {
		a.compareZones(id)
	}
}

// Assign seats a checker at an endpoint, which begins to warm up. A checker
// that sits there already begins anew: its host was re-created. An endpoint
// that is not known is passed over.
func (a *Aggregator) Assign(now time.Time, id health.EndpointID, checker string) {
	a.clock.at(now)
	e := a.known(id)
	if e == nil || e.count == math.MaxUint8 {
		return
	}
	c := a.internChecker(checker)
	i := a.seats.find(e, c)
	if i >= 0 {
		a.recreate(id, e, i)
		return
	}
	a.stand(c, a.policyOf(e).class)
	a.seats.add(e, seat{checker: c, place: a.checkers.list(c, id), status: noVote})
	a.await(id, e, int(e.count)-1)
	a.mark(id, e)
}

// Unassign takes the checker's seat at the endpoint away, and its vote.
func (a *Aggregator) Unassign(now time.Time, id health.EndpointID, checker string) {
	a.clock.at(now)
	e := a.known(id)
	c, ok := a.checkers.ids[checker]
	if e == nil || !ok {
		return
	}
	if i := a.seats.find(e, c); i >= 0 {
		a.vacate(e, i)
		a.mark(id, e)
	}
}

// Connected says that the checker began a stream, the first or another: what
// it said before is not believed any more, and its pairs warm up again.
func (a *Aggregator) Connected(now time.Time, k health.Checker) {
	a.clock.at(now)
	c := a.internChecker(k.ID)
	a.checkers.all[c].here = true
	a.move(c, k.Locality)
	a.restart(c)
}

// Lost says that the checker's stream is gone. Its votes count until they are
// stale; its next report is taken as the first of a new stream.
func (a *Aggregator) Lost(checker string) {
	if c, ok := a.checkers.ids[checker]; ok {
		x := &a.checkers.all[c]
		x.lost, x.here, a.stirred = true, false, true
		a.markAll(c)
		a.release(c)
	}
}

// Report takes in what changed in a checker's report; no votes mean that it
// was heard and said the same. Votes on endpoints where it has no seat are
// passed over.
func (a *Aggregator) Report(now time.Time, checker string, votes []health.Vote) Effects {
	a.clock.at(now)
	c, ok := a.checkers.ids[checker]
	if !ok {
		return a.Tick(now)
	}
	a.hear(c)
	a.fire() // after hearing it, so that it does not fall silent just to come back
	a.climb(c)
	a.listen(c, votes)
	if a.pending() {
		return a.flush()
	}
	return Effects{}
}

// Tick does what has become due, and what follows from what was recorded
// since the last Report or Tick.
func (a *Aggregator) Tick(now time.Time) Effects {
	a.clock.at(now)
	a.fire()
	return a.flush()
}

// NextDeadline says when Tick has something to do if nothing else happens; it
// may turn out to be nothing.
func (a *Aggregator) NextDeadline() (time.Time, bool) {
	if len(a.dirty) > 0 || a.stirred || !a.effects.Empty() {
		return a.clock.now, true
	}
	at, ok := a.deadlines.next()
	if !ok {
		return time.Time{}, false
	}
	return a.clock.time(at), true
}

// pending tells whether the next Tick has something to do whatever the time.
func (a *Aggregator) pending() bool {
	return len(a.dirty)+len(a.touchedCheckers)+len(a.touchedPaths) > 0 || a.stirred || !a.effects.Empty()
}

// Verdict tells what is held to be true of an endpoint, why, and by whose
// votes; the zero verdict of an endpoint that is not known.
func (a *Aggregator) Verdict(id health.EndpointID) health.Verdict {
	e := a.known(id)
	if e == nil {
		return health.Verdict{}
	}
	var t tally
	a.tally(e, &t)
	v := health.Verdict{Status: e.status, Reason: a.explain(id, e, &t), Observations: a.observations(e), Zones: a.views(e)}
	if e.since != never {
		v.Since = time.Unix(0, e.since).UTC()
	}
	return v
}

// Believes tells whether the checker's latest vote on the endpoint counts.
func (a *Aggregator) Believes(id health.EndpointID, checker string) bool {
	e := a.known(id)
	c, ok := a.checkers.ids[checker]
	if e == nil || !ok {
		return false
	}
	i := a.seats.find(e, c)
	return i >= 0 && a.believe(e, &a.seats.of(e)[i]) == believed
}

func (a *Aggregator) known(id health.EndpointID) *endpoint {
	if int(id) >= len(a.endpoints) || a.endpoints[id].flags&known == 0 {
		return nil
	}
	return &a.endpoints[id]
}

func (a *Aggregator) mark(id health.EndpointID, e *endpoint) {
	if e.flags&dirty == 0 {
		e.flags |= dirty
		a.dirty = append(a.dirty, id)
	}
}
