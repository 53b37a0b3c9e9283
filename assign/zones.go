package assign

import (
	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// zone is where checkers fail together.
type zone struct{ region, zone string }

// zoneOf gives a zone's number. It is that of another zone when an Apply has
// ended after which no endpoint and no checker is there.
func (p *Planner) zoneOf(l health.Locality) int32 {
	recent := &p.recent[recentOf(l.Region, l.Zone)]
	name := zone{l.Region, l.Zone}
	if recent.known && recent.name == name {
		return recent.id
	}
	id, ok := p.zoneIDs[name]
	if !ok {
		id = p.addZone()
		p.zoneIDs[name] = id
		p.zoneNames[id], p.zoneHash[id], p.region[id] = name, rendezvous.Hash(l.Region, l.Zone), p.regionOf(l.Region)
		p.idleZones = append(p.idleZones, id) // until somebody is there
	}
	*recent = zoneNumber{name, id, true}
	return id
}

// addZone makes room for one more zone.
func (p *Planner) addZone() int32 {
	if n := len(p.freeZones); n > 0 {
		id := p.freeZones[n-1]
		p.freeZones, p.zoneUses[id] = p.freeZones[:n-1], 0
		return id
	}
	p.zoneNames, p.zoneHash = append(p.zoneNames, zone{}), append(p.zoneHash, 0)
	p.zoneUses, p.region = append(p.zoneUses, 0), append(p.region, 0)
	p.used, p.groups = append(p.used, 0), append(p.groups, group{})
	for i := range p.classes {
		p.classes[i].grow(len(p.zoneHash))
	}
	return int32(len(p.zoneHash) - 1)
}

// occupy counts endpoints and checkers of a zone, if it is one.
func (p *Planner) occupy(z, by int32) {
	if z == none {
		return
	}
	if p.zoneUses[z] += by; p.zoneUses[z] == 0 {
		p.idleZones = append(p.idleZones, z)
	}
}

// freeIdle forgets the zones where nobody is any more.
func (p *Planner) freeIdle() {
	for _, z := range p.idleZones {
		name := p.zoneNames[z]
		if p.zoneUses[z] != 0 {
			continue
		}
		delete(p.zoneIDs, name)
		if recent := &p.recent[recentOf(name.region, name.zone)]; recent.id == z {
			*recent = zoneNumber{}
		}
		p.leaveRegion(name.region, p.region[z])
		p.zoneNames[z], p.zoneUses[z] = zone{}, none // its region is as good as any
		p.freeZones = append(p.freeZones, z)
	}
	p.idleZones = p.idleZones[:0]
}

// zoneNumber is a zone that was asked for lately.
type zoneNumber struct {
	name  zone
	id    int32
	known bool
}

// recentOf is where a zone is remembered: names differ at the end mostly.
func recentOf(region, zone string) int {
	n := len(region)
	if n > 0 {
		n += int(region[n-1])
	}
	if zone != "" {
		n = n*31 + int(zone[len(zone)-1])
	}
	return n % recentZones
}

const recentZones = 64

// regionOf gives a region's number, and counts one more zone of it.
func (p *Planner) regionOf(name string) int32 {
	id, ok := p.regionIDs[name]
	switch n := len(p.freeRegions); {
	case ok:
	case n > 0:
		id, p.freeRegions = p.freeRegions[n-1], p.freeRegions[:n-1]
	default:
		id = int32(len(p.usedRegions))
		p.usedRegions, p.regionZones = append(p.usedRegions, 0), append(p.regionZones, 0)
	}
	p.regionIDs[name] = id
	p.regionZones[id]++
	return id
}

// leaveRegion counts one zone of a region less.
func (p *Planner) leaveRegion(name string, id int32) {
	if p.regionZones[id]--; p.regionZones[id] == 0 {
		delete(p.regionIDs, name)
		p.freeRegions = append(p.freeRegions, id)
	}
}
