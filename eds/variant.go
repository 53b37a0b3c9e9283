package eds

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
)

// The dynamic parameters that choose among the variants of an assignment: the
// health that the checkers of one zone see. Without a region, all zones of the name
// are one; a region without a zone chooses nothing.
const (
	ZoneParameter   = "zone"
	RegionParameter = "region"
)

// separator stands between a name and what chooses the variant, in the key of
// a watch by a locator. It is in no valid UTF-8, which names are.
const separator = "\xff"

// locatorKey tells apart what locators ask for: the name, and zone and region if
// these are given. Other parameters choose nothing.
func locatorKey(l *discoveryv3.ResourceLocator) string {
	if l.GetName() == everything {
		return everything
	}
	zone, given := l.GetDynamicParameters()[ZoneParameter]
	if !given {
		return l.GetName() + separator
	}
	key := l.GetName() + separator + choiceOf(zone)
	if region, given := l.GetDynamicParameters()[RegionParameter]; given {
		key += separator + region
	}
	return key
}

// choiceOf tells a zone, the empty one too, from none, which is the empty choice. A
// region follows behind a separator.
func choiceOf(zone string) string { return "=" + zone }

// zoneOf is what choiceOf was given, and whether there is a region.
func zoneOf(choice string) (zone health.Locality, inRegion bool) {
	zone.Zone, zone.Region, inRegion = strings.Cut(strings.TrimPrefix(choice, "="), separator)
	return zone, inRegion
}

// zoning says how clients choose the variant of an assignment.
type zoning struct {
	byLocator  bool // by the dynamic parameters of a locator
	byLocality bool // else by their node's locality
}

// choice gives what chooses the variant of a client that gives no parameter.
func (z zoning) choice(t *table, at *corev3.Locality) string {
	if t.whole || !z.byLocality || at.GetZone() == "" {
		return ""
	}
	if at.GetRegion() == "" {
		return choiceOf(at.GetZone())
	}
	return choiceOf(at.GetZone()) + separator + at.GetRegion()
}

// keys adds what locators ask for to names: their names where there are no variants
// to choose from.
func (z zoning) keys(typeURL string, names []string, locators []*discoveryv3.ResourceLocator) []string {
	for _, l := range locators {
		if z.byLocator && typeURL == resourcev3.EndpointType {
			names = append(names, locatorKey(l))
		} else {
			names = append(names, l.GetName())
		}
	}
	return names
}

// variant makes a slot one of a zone: the base's resource, with the health that
// is the zone's own.
type variant struct {
	base   *slot
	choice string          // never empty
	zone   health.Locality // the one chosen

	// Guarded by the lock of the variant's slot, which is taken before that of
	// the base.
	own   map[int]byte // by index into the base's health; the rest is the base's
	frame *frame       // with own in it; nil: to be made
	of    *frame       // the base's frame that it was made of
	fixed *frame       // of one that nobody keeps: what it was when it was made; else nil
}

func newVariant(base *slot, choice string) *slot {
	zone, _ := zoneOf(choice)
	return &slot{name: base.name, variant: &variant{base: base, choice: choice, zone: zone}}
}

// current is called under the lock of the variant's slot.
func (v *variant) current() *frame {
	if v.fixed != nil {
		return v.fixed
	}
	v.base.mu.Lock()
	defer v.base.mu.Unlock()
	r := v.base.resource
	if r == nil {
		return nil
	}
	f := r.current()
	if len(v.own) == 0 {
		return f
	}
	if v.frame == nil || v.of != f {
		v.frame, v.of = r.with(v.own), f
	}
	return v.frame
}

// setZoneHealth notes the health of an endpoint as the zone sees it, and tells
// whether it differs.
func (s *slot) setZoneHealth(index int, status byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.variant
	if was, ok := v.own[index]; ok && was == status {
		return false
	}
	if v.own == nil {
		v.own = make(map[int]byte)
	}
	v.own[index], v.frame = status, nil
	return true
}

// unsetZoneHealth makes the base's health count again, and tells whether it did not.
func (s *slot) unsetZoneHealth(index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.variant
	if _, ok := v.own[index]; !ok {
		return false
	}
	delete(v.own, index)
	v.frame = nil
	return true
}

// dropZoneHealth makes the base's health count again for every endpoint.
func (s *slot) dropZoneHealth() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.variant.own, s.variant.frame = nil, nil
}

// variantsOf gives the variants of a slot that anyone watches.
func (t *table) variantsOf(s *slot) []*slot {
	if t.chosen.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(s.variants))
}

// variants gives those of a name.
func (t *table) variants(name string) []*slot {
	if t.chosen.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	s := t.slots[name]
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	return t.variantsOf(s)
}

// variantLocked gives the variant of a slot, which comes to be if need be.
func (t *table) variantLocked(base *slot, choice string) (s *slot, made bool) {
	if s = base.variants[choice]; s != nil {
		return s, false
	}
	if base.variants == nil {
		base.variants = make(map[string]*slot)
	}
	s = newVariant(base, choice)
	base.variants[choice] = s
	t.chosen.Add(1)
	return s, true
}
