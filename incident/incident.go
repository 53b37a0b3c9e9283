package incident

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"hdsd/health"
)

// forced is the prefix of the reason of a transition by an operator's override.
const forced = "forced unhealthy"

// Cause is the place of an incident, which is its likely cause.
type Cause uint8

// Causes.
const (
	Endpoint Cause = iota // one endpoint, or one host
	Cluster               // several endpoints of one cluster
	Zone                  // several clusters in one zone
	Operator              // an override began it
	Several               // several clusters in several zones
	Network               // a path to the zone in which it began was cut
	Checkers              // checkers that saw it begin were doubted
)

// Incident is changes of health close in time and place.
type Incident struct {
	ID         string
	Start, End time.Time // End is zero while it lasts
	Cause      Cause
	Clusters   []string // sorted, each once, without versions
	Version    string   // of the cluster; empty for the first one, or several
	Zones      []string // sorted, without the empty one
	Endpoints  int      // that went down, each counted once
	Down       int      // endpoints that are still down
	First      health.Transition
}

// incident is an Incident in the making.
type incident struct {
	id       string
	start    time.Time
	end      time.Time // zero while it lasts
	down     int
	parts    map[string]*part // by cluster
	evidence evidence
}

// part is the part of an incident in one cluster.
type part struct {
	first     health.Transition
	last      time.Time // change
	down      int
	endpoints map[health.Hash]struct{}
	hosts     map[string]struct{}
	zones     map[string]struct{}
}

// id names an incident by the place behind its first transition.
func id(place uint64) string { return strconv.FormatUint(place, 36) }

// part returns the part of the transition's cluster.
func (n *incident) part(t *health.Transition) *part {
	p := n.parts[t.Endpoint.Cluster]
	if p == nil {
		p = &part{first: *t, endpoints: map[health.Hash]struct{}{}, hosts: map[string]struct{}{}, zones: map[string]struct{}{}}
		n.parts[t.Endpoint.Cluster] = p
	}
	return p
}

func (n *incident) fail(t *health.Transition) {
	p := n.part(t)
	p.last = t.Time
	p.endpoints[t.Endpoint.Hash()] = struct{}{}
	p.hosts[host(t.Endpoint.Address)] = struct{}{}
	if zone := t.Endpoint.Locality.Zone; zone != "" {
		p.zones[zone] = struct{}{}
	}
	p.down++
	n.down++
	n.end = time.Time{}
}

func (n *incident) recover(e *health.Endpoint, t time.Time) {
	p := n.parts[e.Cluster]
	p.last = t
	p.down--
	if n.down--; n.down == 0 {
		n.end = t
	}
}

// move counts an endpoint under its new locality.
func (n *incident) move(from, to *health.Endpoint) {
	p := n.parts[from.Cluster]
	delete(p.endpoints, from.Hash())
	p.endpoints[to.Hash()] = struct{}{}
}

// host is an address without its port.
func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// visible returns the part of an incident that a query may show, or false if there is none.
func (n *incident) visible(q *Query) (Incident, bool) {
	i := Incident{ID: n.id}
	hosts, zones := map[string]struct{}{}, map[string]struct{}{}
	for name, p := range n.parts {
		if !q.Visible(name) {
			continue
		}
		version := q.versionOf(name)
		if i.Clusters = append(i.Clusters, health.ClusterOf(name, version)); len(i.Clusters) == 1 || p.first.Time.Before(i.First.Time) {
			i.Start, i.First, i.Version = p.first.Time, p.first, version
		}
		if p.last.After(i.End) {
			i.End = p.last
		}
		i.Endpoints += len(p.endpoints)
		i.Down += p.down
		maps.Copy(hosts, p.hosts)
		maps.Copy(zones, p.zones)
	}
	if i.Down > 0 {
		i.End = time.Time{}
	}
	if len(i.Clusters) > 1 {
		i.Version = ""
	}
	slices.Sort(i.Clusters)
	i.Clusters = slices.Compact(i.Clusters)
	i.Zones = slices.Sorted(maps.Keys(zones))
	switch {
	case strings.HasPrefix(i.First.Reason, forced):
		i.Cause = Operator
	case n.evidence.cutTo(i.First.Endpoint.Locality):
		i.Cause = Network
	case n.evidence.blames(i.First.Observations):
		i.Cause = Checkers
	case len(hosts) <= 1:
		i.Cause = Endpoint
	case len(i.Clusters) == 1:
		i.Cause = Cluster
	case len(zones) == 1:
		i.Cause = Zone
	default:
		i.Cause = Several
	}
	return i, len(i.Clusters) > 0
}

// newestFirst orders incidents by their beginning.
func newestFirst(a, b *Incident) int {
	return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(b.ID, a.ID))
}
