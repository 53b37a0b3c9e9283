//go:build !race || soak

package coordinator

import (
	"testing"
	"time"

	"hdsd/api"
	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// wantInZone tells what subscribers of a zone have to be told of an address:
// UNKNOWN for the same as all.
func (l *lab) wantInZone(zone, address string, want health.Status) {
	l.t.Helper()
	key := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address}
	id := l.idOf(key)
	for where, want := range map[health.Locality]health.Status{
		{Zone: zone}: want, {Region: "eu", Zone: zone}: want, {Region: "us", Zone: zone}: health.Unknown,
	} {
		if got := l.zoneHealth[where][id]; got != want {
			l.t.Errorf("in zone %v, %s is told to be %v, want %v", where, address, got, want)
		}
	}
}

// cutZone is a fleet whose checkers in zone b do not reach two endpoints.
func cutZone(t *testing.T) (l *lab, address string) {
	l, addresses := fleetOf(t, 6, 30)
	l.core.Timing.ZoneViews = true
	l.intake.restart(l.sets, catalog.NewRules(l.rules))
	l.cutOff(addresses[:2], func(id string) bool { return id[len(id)-1] == 'b' })
	l.pass(10 * time.Second)
	l.wantPublished("web", addresses[0], health.Healthy)
	l.wantInZone("b", addresses[0], health.Timeout)
	l.wantInZone("c", addresses[0], health.Unknown)
	l.wantInZone("b", addresses[5], health.Unknown)
	return l, addresses[0]
}

func TestZoneGetsItsView(t *testing.T) {
	l, address := cutZone(t)
	l.reconnectAll()
	l.pass(5 * time.Second)
	l.wantInZone("b", address, health.Unknown)
}

func TestOverridesAndFreezesHoldInAllZones(t *testing.T) {
	l, address := cutZone(t)
	key := health.Endpoint{Cluster: "web", Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address}
	l.drain(key)
	l.wantInZone("b", address, health.Unknown)
	l.clearScope(key)
	l.wantInZone("b", address, health.Timeout)
	l.freeze(api.Freeze{Reason: "why", Author: "ann"})
	l.wantInZone("b", address, health.Unknown)
	l.unfreeze("ann")
	l.wantInZone("b", address, health.Timeout)
}

func TestSourceHealthHoldsInAllZones(t *testing.T) {
	l, address := cutZone(t)
	l.reload(weighing(map[string]configv1.UpstreamHealth{"local": configv1.UpstreamHealth_THEIRS}))
	l.wantInZone("b", address, health.Unknown)
	l.reload(weighing(map[string]configv1.UpstreamHealth{"local": configv1.UpstreamHealth_OURS}))
	l.wantInZone("b", address, health.Timeout)
}

func TestGoneEndpointHasNoZoneHealth(t *testing.T) {
	l, _ := cutZone(t)
	l.setClusters()
	l.pass(time.Second)
	if len(l.zoneHealth[health.Locality{Zone: "b"}])+len(l.zoneHealth[health.Locality{Region: "eu", Zone: "b"}]) > 0 {
		t.Errorf("still told: %v", l.zoneHealth)
	}
}
