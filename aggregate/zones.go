package aggregate

import (
	"math"
	"strings"

	"hdsd/health"
)

// zone is a region and a zone in it.
type zone [2]string

func (z zone) String() string { return strings.Trim(z[0]+"/"+z[1], "/") }

// zones numbers them; 0 is no zone, and every zone beyond the last number.
type zones struct {
	numbers  map[zone]uint16
	names    []zone
	deserted []bool // most of its checkers have lost their streams
}

func (z *zones) of(l health.Locality) uint16 {
	name := zone{l.Region, l.Zone}
	number, ok := z.numbers[name]
	if ok || len(z.names) > math.MaxUint16 {
		return number
	}
	number = uint16(len(z.names))
	z.numbers[name] = number
	z.names, z.deserted = append(z.names, name), append(z.deserted, false)
	return number
}

// muster finds out which zones are deserted. A single checker that has lost its
// stream restarts, and what it said of its zone stands until it is out of date;
// where most have, the zone itself is the likelier reason.
func (a *Aggregator) muster() {
	if !a.stirred {
		return
	}
	a.stirred = false
	balance := make([]int, len(a.zones.names)) // lost ones less the others
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
		if c := &a.checkers.all[i]; c.lost && a.zones.deserted[c.zone] != (balance[c.zone] > 0) {
			a.markAll(uint32(i))
		}
	}
	for zone := range balance {
		a.zones.deserted[zone] = balance[zone] > 0
	}
}
