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

// resourceServer gives data planes what the machine decides.
type resourceServer interface {
	Update(publish.Update)
	SetHealth([]publish.Health)
	SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID)
}

// publisher gives data planes their part of decisions, and knows what any goroutine may ask of it.
type publisher struct {
	planes   resourceServer
	complete func()                       // tells data planes what does not exist; set once
	frozen   atomic.Pointer[store.Freeze] // nil: not frozen

	healthOf   map[string]bool // clusters with stored health at the start; set once
	takenOver  sync.Map        // names of those and of clusters that data planes need not check
	overridden atomic.Bool     // there is an override, or was one since the start
}

// restore takes over what is stored.
func (p *publisher) restore(s *store.State) {
	p.frozen.Store(s.Freeze)
	p.overridden.Store(len(s.Overrides) > 0)
	p.healthOf = map[string]bool{}
	for _, held := range s.Current {
		if name := held.Endpoint.Cluster; held.Status != health.Unknown {
			p.healthOf[name] = true
			if !s.GivenBack[name] {
				p.takenOver.Store(name, true)
			}
		}
	}
}

func (p *publisher) observe(_ time.Time, e machine.Effect) {
	switch e := e.(type) {
	case machine.Decided:
		p.publish(e.Decision)
	case machine.SourcesAnswered:
		p.complete()
	}
}

// publish gives data planes their part of a decision.
func (p *publisher) publish(next *decision.Decision) {
	if len(next.Health) > 0 {
		p.planes.SetHealth(next.Health)
	}
	for i := range next.Update.Clusters {
		if k := &next.Update.Clusters[i]; k.Checked {
			p.takenOver.Store(k.Name, true)
		}
	}
	for _, name := range next.GivenBack {
		p.takenOver.Delete(name)
	}
	for _, name := range next.Update.RemovedClusters {
		p.takenOver.Delete(name)
	}
	if next.HasUpdate() {
		p.planes.Update(next.Update)
	}
	if len(next.Withdrawn) > 0 {
		p.planes.SetHealth(next.Withdrawn)
	}
	for i := range next.Zones {
		z := &next.Zones[i]
		p.planes.SetZoneHealth(z.Zone, z.Set, z.Unset)
	}
	if next.Freeze != nil {
		p.frozen.Store(next.Freeze.After)
	}
	if next.Held != nil {
		p.frozen.Store(next.Held)
	}
	if len(next.Overrides) > 0 {
		p.overridden.Store(true)
	}
}
