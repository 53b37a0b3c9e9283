package aggregate

import (
	"strings"

	"hdsd/health"
)

// zone is a region and a zone in it.
type zone [2]string

func (z zone) String() string { return strings.Trim(z[0]+"/"+z[1], "/") }

// noZone is the number of no zone at all.
const noZone = 0

// zones numbers those where there are endpoints or checkers, or that a path
// begins or ends at. A number is free again when nothing is there any more.
type zones struct {
	pool[zone, bool] // whether most of its checkers have lost their streams
}

func newZones() (z zones) {
	z.use(zone{}) // gets noZone, for good
	return z
}

// enter counts one more user of a zone.
func (z *zones) enter(l health.Locality) uint32 {
	name := zone{l.Region, l.Zone}
	if name == (zone{}) {
		return noZone
	}
	number, _ := z.use(name)
	return number
}

// hold counts one more user of a zone that has some.
func (z *zones) hold(number uint32) {
	if number != noZone {
		z.all[number].uses++
	}
}

// leave counts one user of a zone less.
func (z *zones) leave(number uint32) {
	if number != noZone {
		z.drop(number)
	}
}

func (z *zones) name(number uint32) zone { return z.all[number].key }

func (z *zones) deserted(number uint32) bool { return *z.at(number) }

// muster finds out which zones are deserted. A single checker that has lost its
// stream restarts, and what it said of its zone stands until it is out of date;
// where most have, the zone itself is the likelier reason.
func (a *Aggregator) muster() {
	if !a.stirred {
		return
	}
	a.stirred = false
	balance := make([]int, len(a.zones.all)) // lost ones less the others
	for i := range a.checkers.all {
		switch c := &a.checkers.all[i]; {
		case c.name == "":
		case c.lost:
			balance[c.zone]++
		default:
			balance[c.zone]--
		}
	}
	for i := range a.checkers.all {
		if c := &a.checkers.all[i]; c.lost && a.zones.deserted(c.zone) != (balance[c.zone] > 0) {
			a.markAll(uint32(i))
		}
	}
	for zone := range balance {
		*a.zones.at(uint32(zone)) = balance[zone] > 0
	}
}
