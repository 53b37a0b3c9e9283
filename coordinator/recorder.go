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

// historian keeps the history, and what a restart takes over.
type historian interface {
	chronicler
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

// recorder gives the history its part of effects. It never waits for the disk.
type recorder struct {
	history historian
	rooms   *machine.Machine
	flipped func([]health.Transition) // called once the history has them; never waits; nil: nobody is told
}

func (r *recorder) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.Decided:
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
	case machine.Forgettable:
		r.forget()
	}
}

// record gives the history its part of a decision.
func (r *recorder) record(next *decision.Decision) {
	if next.Freeze != nil {
		r.history.SaveFreeze(next.Freeze.After)
	}
	if next.Held != nil {
		r.history.SaveFreeze(next.Held)
	}
	if len(next.Overrides) > 0 {
		changed := make(map[health.Endpoint]*store.Override, len(next.Overrides))
		for i := range next.Overrides {
			o := &next.Overrides[i]
			if changed[o.Override.Scope] = nil; o.Kind == decision.Set {
				changed[o.Override.Scope] = &o.Override
			}
		}
		r.history.SaveOverrides(changed)
	}
	if next.Trust != nil {
		r.history.SaveTrust(next.Trust.Checker, next.Trust.After)
	}
	if len(next.Clusters) > 0 {
		r.history.RememberClusters(next.Clusters)
	}
	if len(next.Voted) > 0 {
		r.history.SaveVoted(next.Voted)
	}
	if len(next.Transitions) > 0 {
		r.history.Append(next.Transitions)
		if r.flipped != nil {
			r.flipped(next.Transitions)
		}
	}
	if len(next.Unvoted) > 0 {
		forgotten := make(map[health.Hash]*health.Verdict, len(next.Unvoted))
		for _, hash := range next.Unvoted {
			forgotten[hash] = nil
		}
		r.history.SaveVoted(forgotten)
	}
	if changed := givenBack(next); len(changed) > 0 {
		r.history.SaveGivenBack(changed)
	}
}

// givenBack returns which clusters a decision gives back, or not any more.
func givenBack(next *decision.Decision) map[string]bool {
	changed := make(map[string]bool, len(next.TakenOver)+len(next.GivenBack))
	for _, name := range slices.Concat(next.TakenOver, next.Update.RemovedClusters) {
		changed[name] = false
	}
	for _, name := range next.GivenBack {
		changed[name] = true
	}
	return changed
}

// forget lets the store forget the health of endpoints that are gone.
func (r *recorder) forget() {
	// A Cluster does not change, so the store's goroutine may read it.
	present := slices.Collect(r.rooms.Rulings.Clusters())
	hashes := sync.OnceValue(func() map[health.Hash]struct{} { return hashesOf(present) })
	r.history.Forget(func(hash health.Hash) bool {
		_, known := hashes()[hash]
		return known
	})
}

// hashesOf returns the hashes of all endpoints, checked or not.
func hashesOf(clusters []*catalog.Cluster) map[health.Hash]struct{} {
	all := map[health.Hash]struct{}{}
	for _, k := range clusters {
		for i := range k.Endpoints {
			all[k.Endpoints[i].Hash()] = struct{}{}
		}
	}
	return all
}

// storedEstablished returns who is established as the store keeps it.
func storedEstablished(changed map[string]*fleet.Established) map[string]*store.Established {
	all := make(map[string]*store.Established, len(changed))
	for id, e := range changed {
		if all[id] = nil; e != nil {
			all[id] = &store.Established{Identity: e.Identity, Seen: e.Seen, StandIn: e.StandIn, Founder: e.Founder}
		}
	}
	return all
}

// storedTrials returns records as the store keeps them.
func storedTrials(records map[string]*canary.Record) map[string]*store.Trials {
	all := make(map[string]*store.Trials, len(records))
	for name, r := range records {
		if r == nil {
			all[name] = nil
			continue
		}
		out := &store.Trials{Retries: r.Retries}
		for _, p := range r.Proven {
			out.Proven = append(out.Proven, store.Proof{Build: uint64(p.Build), Shape: uint64(p.Shape)})
		}
		for _, shape := range r.Blamed {
			out.Blamed = append(out.Blamed, uint64(shape))
		}
		for _, loss := range r.Losses {
			out.Losses = append(out.Losses, store.Loss(loss))
		}
		all[name] = out
	}
	return all
}
