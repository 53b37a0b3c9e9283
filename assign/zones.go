package assign

import "hdsd/health"

// zoneOf numbers a locality's zone, and makes room for what is kept by zone.
func (p *Planner) zoneOf(l health.Locality) int32 {
	z := p.zones.Number(l)
	for len(p.used) < p.zones.Len() {
		p.used, p.groups = append(p.used, 0), append(p.groups, group{})
		for i := range p.classes {
			p.classes[i].grow(len(p.used))
		}
	}
	for len(p.usedRegions) < p.zones.Regions() {
		p.usedRegions = append(p.usedRegions, 0)
	}
	return z
}
