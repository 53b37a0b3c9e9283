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
	numbers map[zone]uint16
	names   []zone
}

func (z *zones) of(l health.Locality) uint16 {
	name := zone{l.Region, l.Zone}
	number, ok := z.numbers[name]
	if ok || len(z.names) > math.MaxUint16 {
		return number
	}
	number = uint16(len(z.names))
	z.numbers[name] = number
	z.names = append(z.names, name)
	return number
}
