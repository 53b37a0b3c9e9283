package aggregate

import (
	"strings"

	"hdsd/health"
)

// zone is a region and a zone within it.
type zone [2]string

func (z zone) String() string { return strings.Trim(z[0]+"/"+z[1], "/") }

// noZone is the number of the empty zone.
const noZone = 0

// zones numbers the zones that endpoints, checkers and paths refer to. A number is
// free again when it has no more references.
type zones struct {
	pool[zone, bool] // whether the zone is deserted

	shown repeated[health.ZoneVerdict]
}

func newZones() (z zones) {
	z.use(zone{}) // keeps noZone for ever
	return z
}

// enter adds a reference to a zone and returns its number.
func (z *zones) enter(l health.Locality) uint32 {
	name := zone{l.Region, l.Zone}
	if name == (zone{}) {
		return noZone
	}
	number, _ := z.use(name)
	return number
}

// hold adds a reference to a zone that already has one.
func (z *zones) hold(number uint32) {
	if number != noZone {
		z.entries[number].uses++
	}
}

// leave drops a reference to a zone.
func (z *zones) leave(number uint32) {
	if number != noZone {
		z.drop(number)
	}
}

// find returns the number of a zone, or noZone if nothing refers to it.
func (z *zones) find(l health.Locality) uint32 { return z.numbers[zone{l.Region, l.Zone}] }

func (z *zones) name(number uint32) zone { return z.key(number) }

// deserted reports whether most of the zone's checkers have lost their streams.
func (z *zones) deserted(number uint32) bool { return *z.get(number) }

// setDeserted records for each zone whether it is deserted.
func (z *zones) setDeserted(deserted func(number uint32) bool) {
	for number := range z.entries {
		z.entries[number].value = deserted(uint32(number))
	}
}
