package coordinator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator/decision"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// What decisions are carried out by.
type (
	resourceServer interface {
		Update(eds.Update)
		SetHealth([]eds.Health)
		SetZoneHealth(zone health.Locality, set []eds.Health, unset []health.EndpointID)
	}
	historyWriter interface {
		Append([]health.Transition)
		chronicler
		RememberClusters([]string)
		SaveFreeze(*store.Freeze)
		SaveOverrides(map[health.Endpoint]*store.Override)
		SaveTrust(checker string, t *store.Trust)
		SaveVoted(map[health.Hash]*health.Verdict)
		SaveGivenBack(map[string]bool)
	}
)

// maxDecisions is how many decisions the log keeps for a slow follower. The followers in
// this process are never behind.
const maxDecisions = 1024

// decisions is the log of decisions with its followers in this process. A decision reaches
// data planes first, then the history, then the log of events. None of them waits for a
// client or for the disk, so the core's goroutine drives them.
type decisions struct {
	log       decision.Log
	followers [3]decision.Cursor

	planes  resourceServer
	history historyWriter
	events  eventLog
	frozen  atomic.Pointer[store.Freeze] // read by any goroutine; nil: not frozen

	healthOf   map[string]bool // clusters with stored health at the start; set once
	takenOver  sync.Map        // names of those and of clusters that data planes need not check; read by any goroutine
	overridden atomic.Bool     // there is an override, or was one since the start
}

func newDecisions(planes resourceServer, history historyWriter, log zerolog.Logger, m *rulingMetrics) *decisions {
	d := &decisions{
		log: decision.NewMemory(maxDecisions), planes: planes, history: history,
		events: eventLog{log: log, metrics: m, transitions: newTransitionLog(log)},
	}
	for i := range d.followers {
		d.followers[i] = d.log.Follow()
	}
	return d
}

// restore takes over what is stored.
func (d *decisions) restore(s *store.State) {
	d.frozen.Store(s.Freeze)
	d.overridden.Store(len(s.Overrides) > 0)
	d.healthOf = map[string]bool{}
	for _, held := range s.Current {
		if name := held.Endpoint.Cluster; held.Status != health.Unknown {
			d.healthOf[name] = true
			if !s.GivenBack[name] {
				d.takenOver.Store(name, true)
			}
		}
	}
	d.events.restored(s)
}

// append appends decisions, and lets all followers catch up after each.
func (d *decisions) append(all []decision.Decision) {
	for i := range all {
		d.log.Append(&all[i])
		for n, apply := range [...]func(*decision.Decision){d.publish, d.record, d.events.write} {
			// The only error is ErrBehind, which nobody gets who follows each decision.
			for next, _ := d.followers[n].Next(); next != nil; next, _ = d.followers[n].Next() {
				apply(next)
			}
		}
	}
}

// publish gives data planes their part of a decision.
func (d *decisions) publish(next *decision.Decision) {
	if len(next.Health) > 0 {
		d.planes.SetHealth(next.Health)
	}
	for i := range next.Update.Clusters {
		if k := &next.Update.Clusters[i]; k.Checked {
			d.takenOver.Store(k.Name, true)
		}
	}
	for _, name := range next.GivenBack {
		d.takenOver.Delete(name)
	}
	for _, name := range next.Update.RemovedClusters {
		d.takenOver.Delete(name)
	}
	if next.HasUpdate() {
		d.planes.Update(next.Update)
	}
	if len(next.Withdrawn) > 0 {
		d.planes.SetHealth(next.Withdrawn)
	}
	for i := range next.Zones {
		z := &next.Zones[i]
		d.planes.SetZoneHealth(z.Zone, z.Set, z.Unset)
	}
}

// record gives the history its part of a decision.
func (d *decisions) record(next *decision.Decision) {
	chronicle{d.history}.decided(time.Now(), next)
	if next.Freeze != nil {
		d.frozen.Store(next.Freeze.After)
		d.history.SaveFreeze(next.Freeze.After)
	}
	if next.Held != nil {
		d.frozen.Store(next.Held)
		d.history.SaveFreeze(next.Held)
	}
	if len(next.Overrides) > 0 {
		d.overridden.Store(true)
		changed := make(map[health.Endpoint]*store.Override, len(next.Overrides))
		for i := range next.Overrides {
			o := &next.Overrides[i]
			if changed[o.Override.Scope] = nil; o.Kind == decision.Set {
				changed[o.Override.Scope] = &o.Override
			}
		}
		d.history.SaveOverrides(changed)
	}
	if next.Trust != nil {
		d.history.SaveTrust(next.Trust.Checker, next.Trust.After)
	}
	if len(next.Clusters) > 0 {
		d.history.RememberClusters(next.Clusters)
	}
	if len(next.Voted) > 0 {
		d.history.SaveVoted(next.Voted)
	}
	if len(next.Transitions) > 0 {
		d.history.Append(next.Transitions)
	}
	if len(next.Unvoted) > 0 {
		forgotten := make(map[health.Hash]*health.Verdict, len(next.Unvoted))
		for _, hash := range next.Unvoted {
			forgotten[hash] = nil
		}
		d.history.SaveVoted(forgotten)
	}
	if changed := givenBack(next); len(changed) > 0 {
		d.history.SaveGivenBack(changed)
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
