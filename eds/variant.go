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

// The dynamic parameters that choose a variant of an assignment: the health that the
// checkers of one zone see. Without a region, zones of the same name are one. A region
// without a zone chooses nothing.
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

// choiceOf returns the choice of a zone, which is never empty: the empty choice means no
// zone. A region follows after a separator.
func choiceOf(zone string) string { return "=" + zone }

// zoneOf returns the zone of a choice, and whether it has a region.
func zoneOf(choice string) (zone health.Locality, inRegion bool) {
	zone.Zone, zone.Region, inRegion = strings.Cut(strings.TrimPrefix(choice, "="), separator)
	return zone, inRegion
}

// zoning says how clients choose the variant of an assignment.
type zoning struct {
	byLocator  bool // by the dynamic parameters of a locator
	byLocality bool // else by their node's locality
}

// choice returns what chooses the variant of a client that gives no parameter.
func (z zoning) choice(t *table, at *corev3.Locality) string {
	if t.whole || !z.byLocality || at.GetZone() == "" {
		return ""
	}
	if at.GetRegion() == "" {
		return choiceOf(at.GetZone())
	}
	return choiceOf(at.GetZone()) + separator + at.GetRegion()
}

// keys adds the keys of locators to names. Where there are no variants to choose from,
// a key is the name.
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

// variant makes a slot the view of a zone: the base's resource, with the health that
// the zone sees itself.
type variant struct {
	base   *slot
	choice string          // never empty
	zone   health.Locality // of the choice

	// Guarded by the lock of the variant's slot, which is taken before the base's.
	own   map[int]byte // by index into the base's health; the rest is the base's
	made  [2]derived   // of the base's, with own in it: for most clients, and for gRPC
	fixed *frame       // of a variant that nobody keeps: its frame when it was made; else nil
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
	r := v.base.resource.of(gRPC)
	f := r.current()
	if len(v.own) == 0 {
		return f
	}
	return derivedFor(&v.made, gRPC).from(f, func() *frame { return r.with(v.own) })
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
	v.own[index], v.made = status, [2]derived{}
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
	v.made = [2]derived{}
	return true
}

// dropZoneHealth makes the base's health count again for every endpoint.
func (s *slot) dropZoneHealth() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.variant.own, s.variant.made = nil, [2]derived{}
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

// variantLocked returns a variant of a slot, and makes it if need be.
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
