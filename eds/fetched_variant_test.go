package eds

import (
	"testing"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
)

// TestFetchedVariantIsConsistent: the health that a zone sees of endpoints is not taken
// for that of the endpoints that replace them during the fetch.
func TestFetchedVariantIsConsistent(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		for id := range health.EndpointID(3) {
			b.server.setHealth(id, health.Healthy)
		}
		for what, keys := range map[string][]string{"everything": nil, "by name": {"a"}, "by a locator": {"a" + separator + "=x"}} {
			b.server.Update(Update{Assignments: []Assignment{assignment("a", 0, 2)}})
			b.server.SetZoneHealth(zoneNamed("x"), down(1), nil)
			found := b.server.published.find(b.server.published.assignments, keys, "=x")
			b.server.Update(Update{Assignments: []Assignment{assignment("a", 2, 1)}})
			f := found.slots[0].latest()
			got := summary(resourcev3.EndpointType, f.bytes[f.value:])
			equal(t, what, got, "HEUN")
			b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{1})
		}
	})
}
