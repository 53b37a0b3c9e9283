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

// The dynamic parameters that choose a variant of an assignment: the health as seen by the
// checkers of one zone. Without a region, zones of the same name are one. A region without a
// zone chooses nothing.
const (
	ZoneParameter   = "zone"
	RegionParameter = "region"
)

// separator stands between name and choice in the key of a watch by a locator. Names
// are valid UTF-8, which never contains it.
const separator = "\xff"

// locatorKey returns the key of a locator: the name, and zone and region if they are
// given. Other parameters choose nothing.
func locatorKey(l *discoveryv3.ResourceLocator) string {
	if l.GetName() == wildcard {
		return wildcard
	}
	zone, ok := l.GetDynamicParameters()[ZoneParameter]
	if !ok {
		return l.GetName() + separator
	}
	key := l.GetName() + separator + choiceOf(zone)
	if region, ok := l.GetDynamicParameters()[RegionParameter]; ok {
		key += separator + region
	}
	return key
}

// choiceOf returns the choice of a zone, which is never empty: the empty choice means no
// zone. A region follows after a separator.
func choiceOf(zone string) string { return "=" + zone }

// zoneOf returns the zone of a choice, and whether it has a region.
func zoneOf(choice string) (zone health.Locality, inRegion bool) {
	zone.Zone, zone.Region, inRegion = strings.Cut(strings.TrimPrefix(choice, "="), separator)
	return zone, inRegion
}

// zoning is the way in which clients choose the variant of an assignment.
type zoning struct {
	byLocator  bool // by the dynamic parameters of a locator
	byLocality bool // else by their node's locality
}

// choice returns the choice for a client without a parameter.
func (z zoning) choice(t *table, locality *corev3.Locality) string {
	if t.whole || !z.byLocality || locality.GetZone() == "" {
		return ""
	}
	if locality.GetRegion() == "" {
		return choiceOf(locality.GetZone())
	}
	return choiceOf(locality.GetZone()) + separator + locality.GetRegion()
}

// keys adds the keys of locators to names. Without variants, a key is the name.
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

// variant makes a slot the view of a zone: the base's resource, with the zone's own health.
type variant struct {
	base   *slot
	choice string          // never empty
	zone   health.Locality // of the choice

	// Guarded by the lock of the variant's slot, which is taken before the base's.
	health  map[int]byte // by index into the base's health; the rest is the base's
	derived [2]derived   // frames derived from the base's, with health in it: for most clients, and for gRPC
	fixed   *frame       // of a temporary variant: its frame when it was made; else nil
}

func newVariant(base *slot, choice string) *slot {
	zone, _ := zoneOf(choice)
	return &slot{name: base.name, variant: &variant{base: base, choice: choice, zone: zone}}
}

// current returns the latest frame, under the lock of the variant's slot.
func (v *variant) current(gRPC bool) *frame {
	if v.fixed != nil {
		return v.fixed
	}
	v.base.mu.Lock()
	defer v.base.mu.Unlock()
	if v.base.resource == nil {
		return nil
	}
	r := v.base.resource.forClient(gRPC)
	f := r.current()
	if len(v.health) == 0 {
		return f
	}
	return derivedFor(&v.derived, gRPC).derive(f, func() *frame { return r.withHealth(v.health) })
}

// setZoneHealth sets a zone's own health of an endpoint, and reports whether it differs.
func (s *slot) setZoneHealth(index int, status byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.variant
	if previous, ok := v.health[index]; ok && previous == status {
		return false
	}
	if v.health == nil {
		v.health = make(map[int]byte)
	}
	v.health[index], v.derived = status, [2]derived{}
	return true
}

// unsetZoneHealth restores the base's health, and reports whether it was different.
func (s *slot) unsetZoneHealth(index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.variant
	if _, ok := v.health[index]; !ok {
		return false
	}
	delete(v.health, index)
	v.derived = [2]derived{}
	return true
}

// dropZoneHealth restores the base's health for every endpoint.
func (s *slot) dropZoneHealth() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.variant.health, s.variant.derived = nil, [2]derived{}
}

// variantsOf returns the variants of a slot; each is watched.
func (t *table) variantsOf(s *slot) []*slot {
	if t.chosen.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(s.variants))
}

// variants returns the variants of a name.
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

// variantLocked returns a variant of a slot, and makes it if missing.
func (t *table) variantLocked(base *slot, choice string) (s *slot, created bool) {
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
