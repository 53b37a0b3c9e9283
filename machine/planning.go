package machine

import (
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/health"
)

// planning tells the fleet which endpoints to check: those whose addresses have room for the probes.
type planning struct{ *Machine }

// count counts the probes of changed clusters. It returns the endpoints, changed or not, that begin or
// cease to wait for room.
func (p planning) count(d *catalog.Delivery) []health.Hash {
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

// template returns the fields that all checked endpoints of a cluster have in common.
func (p planning) template(k *catalog.Cluster) assign.Endpoint {
	return assign.Endpoint{
		ClusterHash: health.ClusterHash(k.Source.Name), Redundancy: k.Redundancy, Rate: k.Rate, Zones: k.Zones, Regions: k.Regions,
		Class: p.Fleet.Class(assign.Class{Needs: k.Checked.Needs, Reach: k.Reach}),
	}
}

// set tells the fleet of an endpoint, given the template of its cluster.
func (p planning) set(template *assign.Endpoint, k *catalog.Cluster, id health.EndpointID, index int) {
	e := *template
	e.ID, e.Hash, e.Locality = id, k.Hashes[index], *k.Checked.LocalityOf(index)
	if p.Targets.Waits(e.Hash) {
		e.Class = p.Fleet.Class(assign.Class{Withheld: true})
	}
	p.Fleet.Upsert(e)
}

// replan tells the fleet of endpoints that begin or cease to wait for room.
func (p planning) replan(moved []health.Hash) {
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
