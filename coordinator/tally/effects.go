package tally

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/notify"
)

// Effects is the changes since the last Take.
type Effects struct {
	Clusters   []GroupChange
	Zones      []GroupChange
	Conditions []notify.Change
	Followed   []ClusterCount // of changed clusters that are followed
}

// ClusterCount is the count of a cluster's endpoints.
type ClusterCount struct {
	Name                      string
	Endpoints, Down, Observed int
}

// GroupChange is a cluster or a zone that is down as a whole, or no longer is.
type GroupChange struct {
	Name      string // of a cluster, or "region/zone"
	Endpoints int
	Down      int
	Since     time.Time // when the last endpoint went down
	Over      bool
	Idle      bool // of a cluster: not all endpoints are down, but none is healthy
}

// Take returns the changes since its last call.
func (t *Tally) Take() Effects {
	for _, name := range slices.Sorted(maps.Keys(t.dirty)) {
		t.judge(name, t.dirty[name])
	}
	clear(t.dirty)
	if t.recount {
		maps.Copy(t.unclean, t.zones)
		t.recount = false
	}
	for _, locality := range slices.SortedFunc(maps.Keys(t.unclean), health.Locality.Compare) {
		t.judgeZone(locality, t.unclean[locality])
	}
	clear(t.unclean)
	taken := t.effects
	t.effects = Effects{}
	return taken
}

// judge determines the state of a cluster as a whole.
func (t *Tally) judge(name string, k *cluster) {
	if k.counted {
		t.counts[k.state]--
	}
	if k.counted = k.endpoints > 0; k.counted {
		k.state = attention.StateOf(k.endpoints, k.down, k.endpoints-k.down-len(k.neutral), k.observed+k.overridden)
		t.counts[k.state]++
	}
	if isDown := k.endpoints > 0 && k.down == k.endpoints; isDown != k.isDown {
		k.isDown = isDown
		g := GroupChange{Name: name, Endpoints: k.endpoints, Down: k.down, Since: k.latest, Over: !isDown}
		t.effects.Clusters = append(t.effects.Clusters, g)
		t.effects.change(!isDown, notify.Condition{
			Key: notify.Key{Kind: notify.ClusterDown, Cluster: name}, Since: g.Since, Command: attention.Cluster(name),
			Text: fmt.Sprintf("cluster %s: %d of %s down", name, g.Down, endpoints(g.Endpoints)),
		})
	}
	t.judgeIdle(name, k)
	hidden := k.down - len(k.shown)
	if (hidden > 0) != (k.hidden > 0) {
		t.effects.change(hidden == 0, notify.Condition{
			Key: notify.Key{Kind: notify.EndpointDown, Cluster: name}, Since: k.latest, Command: attention.Cluster(name),
			Text: fmt.Sprintf("cluster %s: %s more down than are told one by one", name, endpoints(hidden)),
		})
	}
	k.hidden = hidden
	if t.follows != nil && t.follows(name) {
		t.effects.Followed = append(t.effects.Followed, ClusterCount{name, k.endpoints, k.down, k.observed})
	}
}

// judgeIdle determines whether a cluster has no healthy endpoint, although not all are down.
func (t *Tally) judgeIdle(name string, k *cluster) {
	g := attention.Group{Name: name, Endpoints: k.endpoints, Down: k.down, Up: k.endpoints - k.down - len(k.neutral), Unknown: k.unknown}
	isIdle := k.counted && k.state == attention.NoneHealthy && g.IsIdle()
	if isIdle == k.isIdle {
		return
	}
	k.isIdle = isIdle
	start := k.latestNeutral
	if k.latest.After(start) {
		start = k.latest
	}
	t.effects.Clusters = append(t.effects.Clusters, GroupChange{Name: name, Endpoints: k.endpoints, Down: k.down, Since: start, Over: !isIdle, Idle: true})
	t.effects.change(!isIdle, notify.Condition{
		Key: notify.Key{Kind: notify.NoHealthyEndpoint, Cluster: name}, Since: start, Command: attention.Cluster(name), Text: attention.IdleText(&g),
	})
}

// judgeZone determines whether a zone is down as a whole. The only zone is not, beside its
// clusters.
func (t *Tally) judgeZone(locality health.Locality, z *zone) {
	named := 0
	for _, other := range t.zones {
		if other.endpoints > 0 {
			named++
		}
		if named > 1 {
			break
		}
	}
	isDown := z.down == z.endpoints && z.endpoints >= smallestZone && named > 1
	if z.endpoints == 0 && z.down == 0 {
		delete(t.zones, locality)
	}
	if isDown == z.isDown {
		return
	}
	if z.isDown = isDown; isDown {
		t.down++
	} else {
		t.down--
	}
	g := GroupChange{Name: locality.Region + "/" + locality.Zone, Endpoints: z.endpoints, Down: z.down, Since: z.latest, Over: !isDown}
	t.effects.Zones = append(t.effects.Zones, g)
	t.effects.change(!isDown, notify.Condition{
		Key: notify.Key{Kind: notify.ZoneDown, Zone: g.Name}, Since: g.Since, Command: attention.Zone(g.Name),
		Text: fmt.Sprintf("zone %s: all of its %s down", g.Name, endpoints(g.Endpoints)),
	})
}

func (e *Effects) change(ended bool, c notify.Condition) {
	e.Conditions = append(e.Conditions, notify.Change{Condition: c, Ended: ended})
}

func (e *Effects) begin(c notify.Condition) { e.change(false, c) }

func (e *Effects) end(key notify.Key) { e.change(true, notify.Condition{Key: key}) }

func endpointKey(key *health.Endpoint) notify.Key {
	place := strings.Trim(strings.Join([]string{key.Locality.Region, key.Locality.Zone, key.Locality.SubZone}, "/"), "/")
	return notify.Key{Kind: notify.EndpointDown, Cluster: key.Cluster, Zone: place, Address: key.Address}
}

func endpointDown(e *Endpoint) notify.Condition {
	text := fmt.Sprintf("endpoint %s of cluster %s is %s", e.Key.Address, e.Key.Cluster, e.Status)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return notify.Condition{
		Key: endpointKey(e.Key), Since: e.Since, Text: text,
		Command: attention.Endpoint(e.Key.Cluster, e.Key.Address),
	}
}

func endpoints(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}
