package eds

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"hdsd/health"
	"hdsd/publish"
)

// TestFetchedVariantIsConsistent: the health that a zone sees of endpoints is not taken
// for that of the endpoints that replace them during the fetch.
func TestFetchedVariantIsConsistent(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		for id := range health.EndpointID(3) {
			b.server.setHealth(id, health.Healthy)
		}
		for what, keys := range map[string][]string{"everything": nil, "by name": {"a"}, "by a locator": {"a" + separator + "=x"}} {
			b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 2)}})
			b.server.SetZoneHealth(zoneNamed("x"), down(1), nil)
			found := b.server.published.find(b.server.published.assignments, keys, "=x")
			b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 2, 1)}})
			f := found.slots[0].latest()
			got := summary(resourcev3.EndpointType, f.bytes[f.value:])
			equal(t, what, got, "HEUN")
			b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{1})
		}
	})
}

// TestAHugeZoneIsNotRemembered: a client's zone may be as long as its request, and no
// checker has one of that length.
func TestAHugeZoneIsNotRemembered(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.publish("a")
		huge := &corev3.Locality{Region: "eu", Zone: strings.Repeat("x", 1<<20), SubZone: strings.Repeat("y", 1<<20)}
		m := want(resourcev3.EndpointType, "a")
		m.Node.Locality = huge
		pollREST(t, b.server, EndpointsPath, m)
		for _, p := range b.server.polls.All(time.Now()) {
			if len(p.Choice) > maxText+2*len(separator)+1 {
				t.Errorf("a poll is remembered with a choice of %d bytes", len(p.Choice))
			}
		}
		for what, at := range map[string]*corev3.Locality{"a huge zone": huge, "a huge sub-zone": {Zone: "z", SubZone: huge.SubZone}} {
			kept := featuresOf(&corev3.Node{Locality: at}).locality
			if size := len(kept.String()); size > 2*maxText {
				t.Errorf("of %s, a stream keeps %d bytes", what, size)
			}
		}
	})
}
