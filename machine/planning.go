package machine

import (
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/health"
)

// planner passes endpoints to the fleet. It withholds endpoints whose addresses have no room for more probes.
type planner struct{ *Machine }

// count counts the probes of changed clusters. It returns the endpoints of all clusters that begin or cease
// to wait for room.
func (p planner) count(d *catalog.Delivery) []health.Hash {
	table, rulings := p.Targets, p.Rulings
	moved := table.SetLimit(d.Rules.MaxProbes, rulings.Clusters())
	for _, name := range d.Removed {
		table.Replace(rulings.Cluster(name), nil)
	}
	for _, changed := range d.Changed {
		table.Replace(rulings.Cluster(changed.Cluster.Source.Name), changed.Cluster)
	}
	return append(moved, table.Admit()...)
}

// template returns the common fields of the checked endpoints of a cluster.
func (p planner) template(k *catalog.Cluster) assign.Endpoint {
	return assign.Endpoint{
		ClusterHash: health.ClusterHash(k.Source.Name), Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
		Class: p.Fleet.Class(assign.Class{Needs: k.Checked.Needs, Reach: k.Reach}),
	}
}

// set passes an endpoint to the fleet, with the template of its cluster.
func (p planner) set(template *assign.Endpoint, k *catalog.Cluster, id health.EndpointID, index int) {
	e := *template
	e.ID, e.Hash, e.Locality = id, k.Hashes[index], *k.Checked.LocalityOf(index)
	if p.Targets.Waits(e.Hash) {
		e.Class = p.Fleet.Class(assign.Class{Withheld: true})
	}
	p.Fleet.Upsert(e)
}

// replan passes endpoints that begin or cease to wait for room to the fleet.
func (p planner) replan(moved []health.Hash) {
	for _, hash := range moved {
		id, ok := p.Rulings.Find(hash)
		if !ok {
			continue
		}
		if k, index := p.Rulings.At(id); index != catalog.None {
			template := p.template(k)
			p.set(&template, k, id, index)
		}
	}
}
