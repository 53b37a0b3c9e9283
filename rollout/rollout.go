package rollout

import (
	"maps"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/rollout/canary"
)

// Options are the parameters of a Rollout.
type Options struct {
	Report time.Duration // time between two reports of a checker
	Grace  time.Duration // time for which a lost checker keeps its seats
}

// leastCalm is the shortest time without arrivals and losses before a cluster whose canary was
// lost is tried again. It exceeds the time between the restarts of two checkers in a rolling
// restart.
const leastCalm = 10 * time.Second

// Lookup answers the questions of a Rollout to its owner.
type Lookup interface {
	// Endpoint finds the cluster of an endpoint, and the endpoint's index among those
	// that are checked; nil or catalog.None where there is none.
	Endpoint(id health.EndpointID) (k *catalog.Cluster, index int)

	// ID finds a checked endpoint by its hash.
	ID(hash health.Hash) health.EndpointID

	// Connected reports whether a checker is connected.
	Connected(checker string) bool

	// OnProbation reports whether a checker is a newcomer.
	OnProbation(checker string) bool
}

// Rollout decides the specifiers of checkers. The package comment says who may call it.
type Rollout struct {
	// Pace decides when a checker gets a specifier. Its users call it directly. A Rollout
	// reports the made, followed and lost ones to it.
	Pace *Pace

	options Options
	lookup  Lookup

	ledger     *canary.Ledger
	started    bool                // trials may begin
	histories  map[string]*history // by cluster
	recipients map[string]*recipient
	serial     uint64    // of the latest specifier
	releaseAt  time.Time // when to review denied clusters; zero if nothing changed
}

// recipient is a checker that gets specifiers.
type recipient struct {
	health.Checker
	build    canary.Build
	versions map[string]*selection          // its part of each cluster in which it has endpoints
	denied   []string                       // clusters that others must try first
	samples  map[health.EndpointID]struct{} // endpoints beyond its share, as a canary
	withheld []string                       // clusters that it has only in part, or in an older version
}

// New makes a Rollout without clusters or checkers.
func New(o Options, lookup Lookup) *Rollout {
	return &Rollout{
		Pace: NewPace(o.Report), options: o, lookup: lookup,
		ledger: canary.New(canary.Options{
			Report: o.Report, Calm: max(leastCalm, 2*o.Grace), Established: func(id string) bool { return !lookup.OnProbation(id) },
		}),
		histories: map[string]*history{}, recipients: map[string]*recipient{},
	}
}

// Restore restores a stored record. Call it before any other method.
func (r *Rollout) Restore(record canary.Record) { r.ledger.Restore(record) }

// ForgetAbsent forgets the restored records of clusters that no source has.
func (r *Rollout) ForgetAbsent() { r.ledger.ForgetAbsent() }

// Start allows trials, once hdsd has settled.
func (r *Rollout) Start(now time.Time) { r.started, r.releaseAt = true, now }

// Connect records that a checker begins a stream.
func (r *Rollout) Connect(now time.Time, k *health.Checker) {
	r.Pace.Gone(k.ID)
	r.ledger.Connected(now, k)
	c := r.recipients[k.ID]
	if c == nil {
		c = &recipient{}
		r.recipients[k.ID] = c
	}
	c.Checker, c.build = *k, canary.BuildOf(k)
}

// Ended records that hdsd itself ends the stream of a checker.
func (r *Rollout) Ended(id string) { r.ledger.Ended(id) }

// Disconnect records that a checker is lost.
func (r *Rollout) Disconnect(now time.Time, id string) {
	r.Pace.Gone(id)
	r.ledger.Lost(now, id)
}

// Silent records that a checker has stopped reporting.
func (r *Rollout) Silent(now time.Time, id string) { r.ledger.Silent(now, id) }

// Forget forgets a checker that gave up its seats.
func (r *Rollout) Forget(id string) {
	delete(r.recipients, id)
	r.ledger.Forget(id)
}

// Accepted records that a checker accepted a specifier, with its clusters on trial.
// It excludes clusters that the checker's protocol left out.
func (r *Rollout) Accepted(now time.Time, id string, s *specifier.Specifier) {
	r.Pace.Followed(id, s)
	var clusters map[string]bool
	r.ledger.Accepted(now, id, s.Serial, func(name string) bool {
		if clusters == nil {
			clusters = r.clustersOf(s)
		}
		return !clusters[name]
	})
}

// clustersOf finds the clusters in a specifier.
func (r *Rollout) clustersOf(s *specifier.Specifier) map[string]bool {
	clusters := map[string]bool{}
	for _, id := range s.Order {
		if k, _ := r.lookup.Endpoint(id); k != nil {
			clusters[k.Source.Name] = true
		}
	}
	return clusters
}

// Report applies the results of trials in a checker's report.
func (r *Rollout) Report(now time.Time, id string, votes []health.Vote) {
	r.ledger.Reported(now, id)
	if !r.ledger.Trying(id) {
		return
	}
	for _, vote := range votes {
		k, index := r.lookup.Endpoint(vote.Endpoint)
		// Until its first probe ends, an endpoint is reported unhealthy.
		if k != nil && index != catalog.None && (vote.Status != health.Unhealthy || vote.HTTPStatusCode != 0) {
			r.ledger.Probed(id, k.Source.Name, k.Shapes[index])
		}
	}
}

// Effects lists the work of a Rollout's owner.
type Effects struct {
	Events  []Event                   // to log
	Records map[string]*canary.Record // to store, by name; nil removes one
}

// Event reports the outcome of a trial.
type Event struct {
	canary.Event
	Reason string // for canary.Blocked: what to do
}

// Tick applies the due changes. It calls specify for each checker that needs a specifier. With
// atOnce, since the checker is a canary, or must lose a part, the owner sends it before specify
// returns.
//
// Checkers get proven parts when all trials have ended, or a report interval later. So a start
// with many clusters does not make each specifier once for each cluster.
func (r *Rollout) Tick(now time.Time, specify func(checker string, atOnce bool)) Effects {
	var effects Effects
	if r.ledger.Tick(now) {
		r.release(now)
	}
	r.settleTrials(now, specify, &effects)
	if !r.releaseAt.IsZero() && (r.ledger.InProgress() == 0 || !now.Before(r.releaseAt)) {
		r.releaseAt = time.Time{}
		r.sendReleased(now, specify)
		r.settleTrials(now, specify, &effects)
	}
	effects.Records = r.ledger.Changed()
	return effects
}

// NextDeadline returns the next time at which Tick has work if nothing else happens.
func (r *Rollout) NextDeadline() (time.Time, bool) {
	earliest, ok := r.ledger.NextDeadline()
	if deadline, pending := r.Pace.NextDeadline(); pending && (!ok || deadline.Before(earliest)) {
		earliest, ok = deadline, true
	}
	if !r.releaseAt.IsZero() && (!ok || r.releaseAt.Before(earliest)) {
		return r.releaseAt, true
	}
	return earliest, ok
}

// release makes Tick review denied clusters soon.
func (r *Rollout) release(now time.Time) {
	if r.releaseAt.IsZero() {
		r.releaseAt = now.Add(r.options.Report)
	}
}

// settleTrials applies the results of trials until there are no more.
func (r *Rollout) settleTrials(now time.Time, specify func(string, bool), effects *Effects) {
	for events := r.ledger.Events(); len(events) > 0; events = r.ledger.Events() {
		withdraw := map[string]bool{} // checkers that must lose a part
		for _, e := range events {
			noted := Event{Event: e}
			switch e.Kind {
			case canary.Proven, canary.Lost:
			case canary.Blocked:
				noted.Reason = r.Reason(e.Cluster)
			case canary.NotAccepted, canary.Withdrawn:
				withdraw[e.Checker] = true
			}
			effects.Events = append(effects.Events, noted)
			if e.Kind != canary.Started {
				r.release(now)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(withdraw)) {
			specify(id, true)
		}
	}
}

// sendReleased makes the specifiers of checkers whose denied clusters are proven by now. It
// also makes those of canaries with more than their share.
func (r *Rollout) sendReleased(now time.Time, specify func(string, bool)) {
	for _, id := range slices.Sorted(maps.Keys(r.recipients)) {
		c := r.recipients[id]
		if !r.lookup.Connected(id) {
			continue
		}
		proven, canary := len(c.samples) > 0, false
		for _, name := range c.denied {
			switch {
			case r.ledger.Proven(c.build, name):
				proven = true
			case r.mayTry(now, c, name):
				canary = true
			}
		}
		if proven || canary {
			specify(id, canary)
		}
	}
}

// mayTry reports whether a checker is the canary of a cluster. It becomes the canary
// if it can.
func (r *Rollout) mayTry(now time.Time, c *recipient, cluster string) bool {
	previous := c.versions[cluster]
	return r.started && r.ledger.Try(now, c.ID, cluster, previous != nil && previous.cluster != nil)
}
