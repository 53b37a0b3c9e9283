package coordinator

import (
	"sync"
	"sync/atomic"
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/publish"
)

// resourceServer serves clusters and health to data planes.
type resourceServer interface {
	Update(publish.Update)
	SetHealth([]publish.Health)
	SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID)
}

// publisher publishes changes to data planes. Any goroutine may read its atomic fields and takenOver.
type publisher struct {
	planes   resourceServer
	complete func()                     // lets data planes know absent resources; set once
	freeze   atomic.Pointer[log.Freeze] // nil: not frozen

	storedHealth map[string]bool // clusters with stored health at the start; set once
	takenOver    sync.Map        // names of the clusters that data planes need not check
	overridden   atomic.Bool     // an override is or was in force since the start
}

// restore takes over the stored state.
func (p *publisher) restore(s *log.State) {
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
	case machine.Published:
		p.publish(e.Change)
	case machine.Logged:
		p.follow(e.Entry)
	case machine.SourcesAnswered:
		p.complete()
	}
}

// publish sends a change to data planes.
func (p *publisher) publish(c *publish.Change) {
	if len(c.Health) > 0 {
		p.planes.SetHealth(c.Health)
	}
	for i := range c.Update.Clusters {
		if k := &c.Update.Clusters[i]; k.Checked {
			p.takenOver.Store(k.Name, true)
		}
	}
	for _, name := range c.Update.RemovedClusters {
		p.takenOver.Delete(name)
	}
	if !c.Update.IsEmpty() {
		p.planes.Update(c.Update)
	}
	if len(c.Withdrawn) > 0 {
		p.planes.SetHealth(c.Withdrawn)
	}
	for i := range c.Zones {
		z := &c.Zones[i]
		p.planes.SetZoneHealth(z.Zone, z.Set, z.Unset)
	}
}

// follow notes the orders of operators, and the clusters that data planes check again.
func (p *publisher) follow(e *log.Entry) {
	for _, name := range e.GivenBack {
		p.takenOver.Delete(name)
	}
	if e.Freeze != nil {
		p.freeze.Store(e.Freeze.After)
	}
	if e.Held != nil {
		p.freeze.Store(e.Held)
	}
	if len(e.Overrides) > 0 {
		p.overridden.Store(true)
	}
}
