package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"hdsd/health"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/ruling/decision"
	"hdsd/store"
)

// resourceServer serves clusters and health to data planes.
type resourceServer interface {
	Update(publish.Update)
	SetHealth([]publish.Health)
	SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID)
}

// publisher publishes decisions to data planes. Any goroutine may read its atomic fields and takenOver.
type publisher struct {
	planes   resourceServer
	complete func()                       // lets data planes know absent resources; set once
	freeze   atomic.Pointer[store.Freeze] // nil: not frozen

	storedHealth map[string]bool // clusters with stored health at the start; set once
	takenOver    sync.Map        // names of the clusters that data planes need not check
	overridden   atomic.Bool     // an override is or was in force since the start
}

// restore takes over the stored state.
func (p *publisher) restore(s *store.State) {
	p.freeze.Store(s.Freeze)
	p.overridden.Store(len(s.Overrides) > 0)
	p.storedHealth = map[string]bool{}
	for _, h := range s.Current {
		if name := h.Endpoint.Cluster; h.Status != health.Unknown {
			p.storedHealth[name] = true
			if !s.GivenBack[name] {
				p.takenOver.Store(name, true)
			}
		}
	}
}

func (p *publisher) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.DecisionMade:
		p.publish(e.Decision)
	case machine.SourcesAnswered:
		p.complete()
	}
}

// publish sends a decision to data planes.
func (p *publisher) publish(d *decision.Decision) {
	if len(d.Health) > 0 {
		p.planes.SetHealth(d.Health)
	}
	for i := range d.Update.Clusters {
		if k := &d.Update.Clusters[i]; k.Checked {
			p.takenOver.Store(k.Name, true)
		}
	}
	for _, name := range d.GivenBack {
		p.takenOver.Delete(name)
	}
	for _, name := range d.Update.RemovedClusters {
		p.takenOver.Delete(name)
	}
	if d.HasUpdate() {
		p.planes.Update(d.Update)
	}
	if len(d.Withdrawn) > 0 {
		p.planes.SetHealth(d.Withdrawn)
	}
	for i := range d.Zones {
		z := &d.Zones[i]
		p.planes.SetZoneHealth(z.Zone, z.Set, z.Unset)
	}
	if d.Freeze != nil {
		p.freeze.Store(d.Freeze.After)
	}
	if d.Held != nil {
		p.freeze.Store(d.Held)
	}
	if len(d.Overrides) > 0 {
		p.overridden.Store(true)
	}
}
