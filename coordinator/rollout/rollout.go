package rollout

import (
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/coordinator/rollout/canary"
	"hdsd/hds/specifier"
	"hdsd/health"
)

// Options are the parameters of a Rollout.
type Options struct {
	Report time.Duration // time between two reports of a checker
	Grace  time.Duration // for how long the seats of a lost checker are kept
}

// leastCalm is how long at least no checker must come or go before a cluster whose
// canary was lost is tried again. It exceeds the time between the restarts of two
// checkers in a rolling restart.
const leastCalm = 10 * time.Second

// Lookup answers what a Rollout asks its owner.
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

// Rollout is what checkers are sent. See the package's comment for who may call it.
type Rollout struct {
	// Pace says when a checker is to be sent a specifier. Whoever wants one asks it. A
	// Rollout tells it of those that are made, followed and gone.
	Pace *Pace

	options Options
	lookup  Lookup

	ledger     *canary.Ledger
	started    bool                // trials may begin
	histories  map[string]*history // by cluster
	recipients map[string]*recipient
	serial     uint64    // of the last specifier made
	releaseAt  time.Time // when to look again at what checkers were denied; zero if nothing changed
}

// recipient is a checker that is sent specifiers.
type recipient struct {
	health.Checker
	build    canary.Build
	versions map[string]*selection          // what it has of each cluster, for clusters in which it has endpoints
	denied   []string                       // clusters that others must try before it may have them
	samples  map[health.EndpointID]struct{} // endpoints that it got beyond its share, as a canary
	withheld []string                       // clusters that it did not get in full, in their present version
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

// Restore restores a stored record by its name. Call it before any other method.
func (r *Rollout) Restore(name string, record canary.Record) { r.ledger.Restore(name, record) }

// ForgetAbsent forgets what was restored of clusters that no source has.
func (r *Rollout) ForgetAbsent() { r.ledger.ForgetAbsent() }

// Start allows trials, once hdsd has settled.
func (r *Rollout) Start(now time.Time) { r.started, r.releaseAt = true, now }

// Connect records that a checker begins a stream.
func (r *Rollout) Connect(now time.Time, k *health.Checker) {
	r.Pace.Gone(k.ID)
	r.ledger.Connected(now, k)
	to := r.recipients[k.ID]
	if to == nil {
		to = &recipient{}
		r.recipients[k.ID] = to
	}
	to.Checker, to.build = *k, canary.BuildOf(k)
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
	var has map[string]bool
	r.ledger.Accepted(now, id, s.Serial, func(name string) bool {
		if has == nil {
			has = r.clustersOf(s)
		}
		return !has[name]
	})
}

// clustersOf finds the clusters in a specifier.
func (r *Rollout) clustersOf(s *specifier.Specifier) map[string]bool {
	has := map[string]bool{}
	for _, id := range s.Order {
		if k, _ := r.lookup.Endpoint(id); k != nil {
			has[k.Source.Name] = true
		}
	}
	return has
}

// Report applies what a checker's report shows about trials.
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

// Effects lists what the owner of a Rollout has to do.
type Effects struct {
	Events  []Event                   // to log
	Records map[string]*canary.Record // to store, by name; nil removes one
}

// Event reports the outcome of a trial.
type Event struct {
	canary.Event
	Reason string // for canary.Blocked: what to do
}

// Tick applies what is due. It calls specify for each checker whose specifier must be
// made. If that is to be at once, since the checker is a canary, or has what it should not,
// the owner sends it before specify returns.
//
// Checkers get what is proven when all trials have ended, or a report interval later.
// So a start with many clusters does not make each specifier once for each cluster.
func (r *Rollout) Tick(now time.Time, specify func(checker string, atOnce bool)) Effects {
	var out Effects
	if r.ledger.Tick(now) {
		r.release(now)
	}
	r.settleTrials(now, specify, &out)
	if !r.releaseAt.IsZero() && (r.ledger.InProgress() == 0 || !now.Before(r.releaseAt)) {
		r.releaseAt = time.Time{}
		r.sendReleased(now, specify)
		r.settleTrials(now, specify, &out)
	}
	out.Records = r.ledger.Changed()
	return out
}

// NextDeadline returns when Tick next has work if nothing else happens.
func (r *Rollout) NextDeadline() (time.Time, bool) {
	next, ok := r.ledger.NextDeadline()
	if at, waits := r.Pace.NextDeadline(); waits && (!ok || at.Before(next)) {
		next, ok = at, true
	}
	if !r.releaseAt.IsZero() && (!ok || r.releaseAt.Before(next)) {
		return r.releaseAt, true
	}
	return next, ok
}

// release makes Tick look soon at what checkers were denied.
func (r *Rollout) release(now time.Time) {
	if r.releaseAt.IsZero() {
		r.releaseAt = now.Add(r.options.Report)
	}
}

// settleTrials applies the results of trials until there are no more.
func (r *Rollout) settleTrials(now time.Time, specify func(string, bool), out *Effects) {
	for events := r.ledger.Events(); len(events) > 0; events = r.ledger.Events() {
		withdraw := map[string]bool{} // checkers that have something they should not
		for _, e := range events {
			noted := Event{Event: e}
			switch e.Kind {
			case canary.Proven, canary.Lost:
			case canary.Blocked:
				noted.Reason = r.Reason(e.Cluster)
			case canary.NotAccepted, canary.Withdrawn:
				withdraw[e.Checker] = true
			}
			out.Events = append(out.Events, noted)
			if e.Kind != canary.Started {
				r.release(now)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(withdraw)) {
			specify(id, true)
		}
	}
}

// sendReleased makes the specifiers of checkers that may now have what they were
// denied. It also makes those of canaries that have more than their share.
func (r *Rollout) sendReleased(now time.Time, specify func(string, bool)) {
	for _, id := range slices.Sorted(maps.Keys(r.recipients)) {
		to := r.recipients[id]
		if !r.lookup.Connected(id) {
			continue
		}
		more, canary := len(to.samples) > 0, false
		for _, name := range to.denied {
			switch {
			case r.ledger.Proven(to.build, name):
				more = true
			case r.mayTry(now, to, name):
				canary = true
			}
		}
		if more || canary {
			specify(id, canary)
		}
	}
}

// mayTry reports whether a checker is the canary of a cluster. It becomes the canary
// if it can.
func (r *Rollout) mayTry(now time.Time, to *recipient, cluster string) bool {
	before := to.versions[cluster]
	return r.started && r.ledger.Try(now, to.ID, cluster, before != nil && before.cluster != nil)
}
