package zone

import (
	"cmp"

	"hdsd/assign/internal/rendezvous"
	"hdsd/health"
)

// None stands for no zone.
const None = -1

// name holds the names of a zone and its region.
type name struct{ region, zone string }

// Table numbers the occupied zones and regions. Make one with NewTable.
type Table struct {
	ids    map[name]int32
	names  []name // by number, like hashes, uses and regions
	hashes []uint64
	uses   []int32 // number of occupants; None if the number is free
	region []int32
	free   []int32
	idle   []int32 // zones that may be empty

	regionIDs   map[string]int32
	zones       []int32 // number of zones in each region
	freeRegions []int32

	recent [recentZones]recent
}

// NewTable makes an empty Table.
func NewTable() *Table {
	return &Table{ids: map[name]int32{}, regionIDs: map[string]int32{}}
}

// Len is greater than every zone's number.
func (t *Table) Len() int { return len(t.names) }

// Regions is greater than every region's number.
func (t *Table) Regions() int { return len(t.zones) }

// Region returns the number of a zone's region.
func (t *Table) Region(z int32) int32 { return t.region[z] }

// Hash returns a hash of a zone's name.
func (t *Table) Hash(z int32) uint64 { return t.hashes[z] }

// Compare orders zones by name, None first.
func (t *Table) Compare(a, b int32) int {
	if a == None || b == None {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(t.hashes[a], t.hashes[b])
}

// Number returns the number of a locality's zone. It stays valid until a Forget that
// finds the zone empty.
func (t *Table) Number(l health.Locality) int32 {
	n := name{l.Region, l.Zone}
	latest := &t.recent[n.recent()]
	if latest.known && latest.name == n {
		return latest.id
	}
	id, ok := t.ids[n]
	if !ok {
		id = t.add()
		t.ids[n] = id
		t.names[id], t.hashes[id], t.region[id] = n, rendezvous.Hash(n.region, n.zone), t.addToRegion(n.region)
		t.idle = append(t.idle, id) // until the zone is occupied
	}
	*latest = recent{n, id, true}
	return id
}

// add returns a free number.
func (t *Table) add() int32 {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free, t.uses[id] = t.free[:n-1], 0
		return id
	}
	t.names, t.hashes = append(t.names, name{}), append(t.hashes, 0)
	t.uses, t.region = append(t.uses, 0), append(t.region, 0)
	return int32(len(t.names) - 1)
}

// Occupy adds to the occupants of a zone, unless it is None.
func (t *Table) Occupy(z, n int32) {
	if z == None {
		return
	}
	if t.uses[z] += n; t.uses[z] == 0 {
		t.idle = append(t.idle, z)
	}
}

// Forget frees the numbers of empty zones.
func (t *Table) Forget() {
	for _, z := range t.idle {
		if t.uses[z] != 0 {
			continue
		}
		n := t.names[z]
		delete(t.ids, n)
		if latest := &t.recent[n.recent()]; latest.id == z {
			*latest = recent{}
		}
		t.removeFromRegion(n.region, t.region[z])
		t.names[z], t.uses[z] = name{}, None // its region no longer matters
		t.free = append(t.free, z)
	}
	t.idle = t.idle[:0]
}

// addToRegion returns a region's number, and counts one more zone there.
func (t *Table) addToRegion(region string) int32 {
	id, ok := t.regionIDs[region]
	switch n := len(t.freeRegions); {
	case ok:
	case n > 0:
		id, t.freeRegions = t.freeRegions[n-1], t.freeRegions[:n-1]
	default:
		id = int32(len(t.zones))
		t.zones = append(t.zones, 0)
	}
	t.regionIDs[region] = id
	t.zones[id]++
	return id
}

// removeFromRegion counts one zone less in a region.
func (t *Table) removeFromRegion(region string, id int32) {
	if t.zones[id]--; t.zones[id] == 0 {
		delete(t.regionIDs, region)
		t.freeRegions = append(t.freeRegions, id)
	}
}

// recent is a recently found zone: most calls ask for the same few.
type recent struct {
	name  name
	id    int32
	known bool
}

const recentZones = 64

// recent returns the slot in the cache of zones: most names differ only at the end.
func (n name) recent() int {
	end := len(n.region)
	if end > 0 {
		end += int(n.region[end-1])
	}
	if n.zone != "" {
		end = end*31 + int(n.zone[len(n.zone)-1])
	}
	return end % recentZones
}
