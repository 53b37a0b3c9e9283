package coordinator

import (
	"slices"
	"sync"
	"time"

	"hdsd/catalog"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/rollout/canary"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// historyStore stores the history, and the state for a restart.
type historyStore interface {
	eventStore
	Append([]health.Transition)
	RememberClusters([]string)
	SaveFreeze(*store.Freeze)
	SaveOverrides(map[health.Endpoint]*store.Override)
	SaveTrust(checker string, t *store.Trust)
	SaveVoted(map[health.Hash]*health.Verdict)
	SaveGivenBack(map[string]bool)
	SavePlan(map[string][]health.Hash)
	SaveTrials(map[string]*store.Trials)
	SaveEstablished(map[string]*store.Established)
	SavePenalties(map[health.Hash]*store.Penalty)
	Forget(known func(health.Hash) bool)
}

// recorder stores transitions and state. It never waits for the disk.
type recorder struct {
	history       historyStore
	machine       *machine.Machine
	onTransitions func([]health.Transition) // called after the history takes the transitions; must not wait; may be nil
}

func (r *recorder) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.DecisionMade:
		r.record(e.Decision)
	case machine.FleetChanged:
		if len(e.Rows) > 0 {
			r.history.SavePlan(e.Rows)
		}
		if len(e.Established) > 0 {
			r.history.SaveEstablished(storedEstablished(e.Established))
		}
	case machine.TrialsChanged:
		if len(e.Records) > 0 {
			r.history.SaveTrials(storedTrials(e.Records))
		}
	case machine.PenaltiesChanged:
		r.history.SavePenalties(e.Changed)
	case machine.ForgetDue:
		r.forget()
	}
}

// record stores a decision.
func (r *recorder) record(d *decision.Decision) {
	if d.Freeze != nil {
		r.history.SaveFreeze(d.Freeze.After)
	}
	if d.Held != nil {
		r.history.SaveFreeze(d.Held)
	}
	if len(d.Overrides) > 0 {
		changed := make(map[health.Endpoint]*store.Override, len(d.Overrides))
		for i := range d.Overrides {
			o := &d.Overrides[i]
			if changed[o.Override.Scope] = nil; o.Kind == decision.Set {
				changed[o.Override.Scope] = &o.Override
			}
		}
		r.history.SaveOverrides(changed)
	}
	if d.Trust != nil {
		r.history.SaveTrust(d.Trust.Checker, d.Trust.After)
	}
	if len(d.Clusters) > 0 {
		r.history.RememberClusters(d.Clusters)
	}
	if len(d.Voted) > 0 {
		r.history.SaveVoted(d.Voted)
	}
	if len(d.Transitions) > 0 {
		r.history.Append(d.Transitions)
		if r.onTransitions != nil {
			r.onTransitions(d.Transitions)
		}
	}
	if len(d.Unvoted) > 0 {
		forgotten := make(map[health.Hash]*health.Verdict, len(d.Unvoted))
		for _, hash := range d.Unvoted {
			forgotten[hash] = nil
		}
		r.history.SaveVoted(forgotten)
	}
	if changed := givenBack(d); len(changed) > 0 {
		r.history.SaveGivenBack(changed)
	}
}

// givenBack returns the clusters whose state a decision changes: true for those that it gives back.
func givenBack(d *decision.Decision) map[string]bool {
	changed := make(map[string]bool, len(d.TakenOver)+len(d.GivenBack))
	for _, name := range slices.Concat(d.TakenOver, d.Update.RemovedClusters) {
		changed[name] = false
	}
	for _, name := range d.GivenBack {
		changed[name] = true
	}
	return changed
}

// forget removes the health of absent endpoints from the store.
func (r *recorder) forget() {
	// Clusters are immutable, so the goroutine of the store may read them.
	clusters := slices.Collect(r.machine.Rulings.Clusters())
	known := sync.OnceValue(func() map[health.Hash]struct{} { return endpointHashes(clusters) })
	r.history.Forget(func(hash health.Hash) bool {
		_, ok := known()[hash]
		return ok
	})
}

// endpointHashes returns the hashes of all endpoints, including unchecked ones.
func endpointHashes(clusters []*catalog.Cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.Endpoints {
			all[k.Endpoints[i].Hash()] = struct{}{}
		}
	}
	return all
}

// storedEstablished converts established checkers to the form of the store.
func storedEstablished(changed map[string]*fleet.Established) map[string]*store.Established {
	all := make(map[string]*store.Established, len(changed))
	for id, e := range changed {
		if all[id] = nil; e != nil {
			all[id] = &store.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
		}
	}
	return all
}

// storedTrials converts records of trials to the form of the store.
func storedTrials(records map[string]*canary.Record) map[string]*store.Trials {
	all := make(map[string]*store.Trials, len(records))
	for name, r := range records {
		if r == nil {
			all[name] = nil
			continue
		}
		trials := &store.Trials{Retries: r.Retries}
		for _, p := range r.Proven {
			trials.Proven = append(trials.Proven, store.Proof{Build: uint64(p.Build), Shape: uint64(p.Shape)})
		}
		for _, shape := range r.Blamed {
			trials.Blamed = append(trials.Blamed, uint64(shape))
		}
		for _, loss := range r.Losses {
			trials.Losses = append(trials.Losses, store.Loss(loss))
		}
		all[name] = trials
	}
	return all
}
