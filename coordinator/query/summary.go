package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"hdsd/access"
	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/coordinator/catalog"
	"hdsd/health"
)

// Process is how hdsd's process is.
type Process struct {
	Version      string
	NotReady     string // why; empty if it is ready
	Shadow       bool
	Frozen       *api.Freeze // nil if publishing is not frozen
	Started      time.Time
	Failing      string    // why the disk does not take the history; empty if it does
	FailingSince time.Time // zero: not known

	Waiting attention.Named // the caller whose message waits longest for room; no reason: none waits long
}

// Condition is how an endpoint is.
type Condition struct {
	Status    health.Status
	Since     time.Time // zero: not known
	HeldSince time.Time // zero: a believed vote or an override stands behind the status
	Voters    int       // believed votes, 3 at most

	Overridden bool
}

// Crew is what the State knows of checkers as a whole.
type Crew struct {
	Unwatched time.Time // since when no checker is connected; zero if one is, or hdsd settles
	Lost      int       // in the last 24 hours
}

// Status implements api.Backend.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	s := summary{may: access.FromContext(ctx).Clusters(), zones: map[string]*attention.Group{}}
	for !s.finished {
		if err := b.Core.Ask(ctx, s.step); err != nil {
			return api.Status{}, err
		}
	}
	checkers, err := b.Checkers(ctx)
	if err != nil {
		return api.Status{}, err
	}
	s.addCheckers(checkers)
	s.out.Zones = zonesOf(checkers)
	if s.out.History, err = b.history(); err != nil {
		return api.Status{}, err
	}
	process := b.Process()
	s.out.Started = process.Started
	s.out.Version, s.out.NotReady, s.out.Shadow, s.out.Frozen = process.Version, process.NotReady, process.Shadow, process.Frozen != nil
	f := &s.facts
	f.NotReady = attention.Named{Reason: process.NotReady, Since: process.Started}
	if freeze := process.Frozen; freeze != nil {
		f.Frozen = attention.Named{Reason: freeze.String(), Since: freeze.Since}
	}
	f.History = attention.Named{Reason: process.Failing, Since: process.FailingSince}
	if s.may.All() {
		f.Waiting = process.Waiting
		if err := b.addWhole(ctx, &s.out); err != nil {
			return api.Status{}, err
		}
		for _, held := range b.Feed.Held() {
			f.Shrunk = append(f.Shrunk, attention.Named{Name: held.Name, Since: held.Held.Since, Reason: "held until " + held.Held.AcceptsAt.UTC().Format(time.RFC3339)})
		}
	}
	for _, zone := range s.zones {
		f.Zones = append(f.Zones, *zone)
	}
	for _, item := range attention.Of(f) {
		s.out.Attention = append(s.out.Attention, api.Attention{
			Kind: string(item.Kind), Cluster: item.Cluster, Zone: item.Zone, Text: item.Text, Command: item.Command, Since: item.Since,
		})
	}
	return s.out, nil
}

// Overview implements api.Backend.
func (b *Backend) Overview(ctx context.Context, limit int) (found api.Overview, err error) {
	may := access.FromContext(ctx).Clusters()
	err = b.Core.Ask(ctx, func(s State) { found.Clusters, found.Further = s.Worst(limit, may.Has) })
	return found, err
}

// summary is how far the count of all endpoints has come.
type summary struct {
	may      access.Clusters
	after    string // the last cluster that is counted
	begun    bool
	finished bool
	zones    map[string]*attention.Group
	facts    attention.Facts
	out      api.Status
}

// step counts some clusters.
func (s *summary) step(state State) {
	names := state.Names()
	at, exact := slices.BinarySearch(names, s.after)
	if exact && s.begun {
		at++
	}
	for cost := 0; at < len(names); at++ {
		if !s.may.Has(names[at]) {
			continue
		}
		k := state.Cluster(names[at])
		if cost += 1 + len(k.Endpoints); cost > stepCost && cost > 1+len(k.Endpoints) {
			return
		}
		s.add(state, k)
		s.after, s.begun = names[at], true
	}
	crew := state.Crew()
	s.facts.Unwatched, s.out.Checkers.Lost = crew.Unwatched, crew.Lost
	s.finished = true
}

// add counts a cluster.
func (s *summary) add(state State, k *catalog.Cluster) {
	group, observed := attention.Group{Name: k.Source.Name, Endpoints: len(k.Endpoints)}, 0
	for i := range k.Endpoints {
		e := &k.Endpoints[i]
		is := state.Condition(e)
		s.countHealth(is.Status)
		if !is.HeldSince.IsZero() {
			s.out.Endpoints.Held++
			if s.facts.HeldSince.IsZero() || is.HeldSince.Before(s.facts.HeldSince) {
				s.facts.HeldSince = is.HeldSince
			}
		}
		if !k.IsChecked() {
			continue
		}
		s.out.Endpoints.Voters[is.Voters]++
		if is.Voters > 0 || state.Overridden(e) {
			observed++
		}
		note(&group, &is)
		s.addToZone(*e.Locality(), &is)
	}
	s.facts.Held = s.out.Endpoints.Held
	if !k.IsChecked() || group.Endpoints == 0 {
		return
	}
	if reason, since := state.NotChecked(k); reason != "" {
		s.facts.Unchecked = append(s.facts.Unchecked, attention.Named{Name: k.Source.Name, Reason: reason, Since: since})
	}
	counts := &s.out.Clusters
	switch attention.StateOf(group.Endpoints, group.Down, observed) {
	case attention.OK:
		counts.OK++
	case attention.SomeDown:
		counts.SomeDown++
	case attention.HalfDown:
		counts.HalfDown++
	case attention.AllDown:
		counts.AllDown++
	case attention.Unobserved:
		counts.Unobserved++
	}
	if group.Down > 0 {
		s.facts.Clusters = append(s.facts.Clusters, group)
	}
}

// note counts an endpoint that is down.
func note(g *attention.Group, is *Condition) {
	if !is.Status.Down() {
		return
	}
	if g.Down++; is.Since.After(g.Since) {
		g.Since = is.Since
	}
}

// addToZone counts an endpoint in its zone, if that has a name.
func (s *summary) addToZone(in health.Locality, is *Condition) {
	if in.Zone == "" {
		return
	}
	name := in.Region + "/" + in.Zone
	g := s.zones[name]
	if g == nil {
		g = &attention.Group{Name: name}
		s.zones[name] = g
	}
	g.Endpoints++
	note(g, is)
}

func (s *summary) countHealth(is health.Status) {
	n := &s.out.Endpoints
	switch is {
	case health.Healthy:
		n.Healthy++
	case health.Unhealthy:
		n.Unhealthy++
	case health.Timeout:
		n.Timeout++
	case health.Degraded:
		n.Degraded++
	case health.Draining:
		n.Draining++
	default:
		n.Unknown++
	}
}

// addCheckers counts checkers.
func (s *summary) addCheckers(all []api.Checker) {
	n, f := &s.out.Checkers, &s.facts
	for i := range all {
		k := &all[i]
		if k.Connected {
			n.Connected++
		}
		named := attention.Named{Name: k.ID, Reason: cmp.Or(k.DistrustReason, k.BlindReason), Since: k.TroubledSince}
		switch {
		case !k.Connected:
		case k.Silent:
			n.Silent++
			f.Silent = append(f.Silent, named)
		case !k.Trusted && (k.Operator == nil || k.Operator.Trusted):
			n.Doubted++
			f.Doubted = append(f.Doubted, named)
		case !k.Trusted:
			n.Doubted++ // by an operator, who knows
		}
		if k.BlindReason != "" {
			n.Blind++
			named.Reason = k.BlindReason
			f.Blind = append(f.Blind, named)
		}
	}
	slices.SortFunc(f.Doubted, func(a, b attention.Named) int { return strings.Compare(a.Name, b.Name) })
}
