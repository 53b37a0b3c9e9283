package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/health"
)

// Process is the condition of hdsd's process.
type Process struct {
	Version      string
	NotReady     string // reason; empty if it is ready
	Shadow       bool
	Frozen       *api.Freeze // nil if publishing is not frozen
	Started      time.Time
	Failing      string    // reason why the disk does not take the history; empty if it does
	FailingSince time.Time // zero: not known

	Refusing attention.Named // reason why data planes refuse a response; no name; without a reason, none does

	Replication attention.Replication // zero for a coordinator alone

	// These name the caller whose message, or response, waits longest for room; without a
	// reason, none waits long.
	Waiting, WaitingAnswers attention.Named
}

// withoutReasons returns the troubles of replicas for callers that may not see all clusters: without names of clusters.
func withoutReasons(r *attention.Replication) attention.Replication {
	shown := attention.Replication{NoLeader: r.NoLeader, EngineLost: r.EngineLost, Lost: slices.Clone(r.Lost)}
	hide(&shown.NoLeader.Reason)
	hide(&shown.EngineLost.Reason)
	for i := range shown.Lost {
		hide(&shown.Lost[i].Reason)
	}
	return shown
}

// Condition is the condition of an endpoint.
type Condition struct {
	Status    health.Status
	Since     time.Time // zero: not known
	HeldSince time.Time // zero: a believed vote or an override stands behind the status
	Voters    int       // believed votes, 3 at most

	Overridden bool
	Stranded   bool // no checker can check it
}

// Crew is the condition of the checkers as a whole.
type Crew struct {
	Unwatched  time.Time       // start of the time without connected checkers; zero if one is connected, or hdsd settles
	Lost       int             // in the last 24 hours
	TooFew     attention.Named // why the remaining checkers have no majority of the planned votes; no name
	ProbeLimit attention.Named // why endpoints wait for room at their address; no name
}

// Status implements api.Backend.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return api.Status{}, err
	}
	visible, s := b.visible(ctx), summary{zones: map[string]*attention.Group{}}
	for _, r := range now.rows {
		if visible.Has(r.name()) {
			s.add(r)
		}
	}
	s.facts.Unwatched, s.facts.TooFew, s.status.Checkers.Lost = now.crew.Unwatched, now.crew.TooFew, now.crew.Lost
	checkers := b.checkersOf(ctx, now)
	s.addCheckers(checkers)
	s.status.Zones = zonesOf(checkers)
	if s.status.History, err = historyOf(b.Store); err != nil {
		return api.Status{}, err
	}
	process := b.Process()
	replication := process.Replication
	if !visible.All() {
		hide(&process.NotReady)
		replication = withoutReasons(&replication)
	}
	s.status.Started = process.Started
	s.status.Version, s.status.NotReady, s.status.Shadow, s.status.Frozen = process.Version, process.NotReady, process.Shadow, process.Frozen != nil
	f := &s.facts
	f.Replication = replication
	f.NotReady = attention.Named{Reason: process.NotReady, Since: process.Started}
	if freeze := process.Frozen; freeze != nil {
		f.Frozen = attention.Named{Reason: freeze.String(), Since: freeze.Since}
	}
	f.History = attention.Named{Reason: process.Failing, Since: process.FailingSince}
	if visible.All() {
		f.Refusing = process.Refusing
		f.Waiting, f.WaitingAnswers, f.ProbeLimit = process.Waiting, process.WaitingAnswers, now.crew.ProbeLimit
		b.addWhole(&s.status)
		for _, s := range b.Feed.Broken() {
			f.Broken = append(f.Broken, attention.Named{Name: s.Name, Reason: s.Problem, Since: s.Since})
		}
		for _, held := range b.Feed.Held() {
			f.Shrunk = append(f.Shrunk, attention.Named{Name: held.Name, Since: held.Held.Since, Reason: "held until " + held.Held.AcceptsAt.UTC().Format(time.RFC3339)})
		}
	}
	for _, zone := range s.zones {
		f.Zones = append(f.Zones, *zone)
	}
	for _, item := range attention.Of(f) {
		s.status.Attention = append(s.status.Attention, api.Attention{
			Kind: string(item.Kind), Cluster: item.Cluster, Version: item.Version, Zone: item.Zone, Text: item.Text, Command: item.Command, Since: item.Since,
		})
	}
	return s.status, nil
}

// summary is the sum of all clusters.
type summary struct {
	zones  map[string]*attention.Group
	facts  attention.Facts
	status api.Status
}

// add counts a cluster.
func (s *summary) add(r *row) {
	k := r.cluster
	for i := range r.places {
		p := &r.places[i]
		s.status.Endpoints.Add(&p.counts)
		if k.IsChecked() {
			s.addToZone(p)
		}
	}
	if s.status.Endpoints.Held += r.held; r.held > 0 && (s.facts.HeldSince.IsZero() || r.heldSince.Before(s.facts.HeldSince)) {
		s.facts.HeldSince = r.heldSince
	}
	s.facts.Held = s.status.Endpoints.Held
	if !k.IsChecked() {
		if k.IsUncheckable() {
			s.status.Clusters.Unchecked++
			s.facts.Unchecked = append(s.facts.Unchecked, attention.Named{Name: r.name(), Version: k.Version(), Reason: k.UncheckableReason()})
		}
		return
	}
	for n, endpoints := range r.voters {
		s.status.Endpoints.Voters[n] += endpoints
	}
	if len(k.Endpoints) == 0 {
		return
	}
	if r.lacks.Reason != "" {
		s.facts.Unchecked = append(s.facts.Unchecked, r.lacks)
	}
	judged := r.judge()
	counts := &s.status.Clusters
	switch judged.state {
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
	case attention.NoneHealthy:
		counts.NoneHealthy++
	}
	if r.panics.Reason != "" && judged.state != attention.AllDown {
		s.facts.Panics = append(s.facts.Panics, r.panics)
	}
	if judged.Down > 0 || judged.state == attention.NoneHealthy {
		s.facts.Clusters = append(s.facts.Clusters, judged.Group)
	}
}

// addToZone counts a place in its zone, if that has a name.
func (s *summary) addToZone(p *place) {
	if p.locality.Zone == "" {
		return
	}
	name := p.locality.Region + "/" + p.locality.Zone
	if s.zones[name] == nil {
		s.zones[name] = &attention.Group{Name: name}
	}
	p.addTo(s.zones[name])
}

// addCheckers counts checkers.
func (s *summary) addCheckers(checkers []api.Checker) {
	n, f := &s.status.Checkers, &s.facts.Checkers
	for i := range checkers {
		k := &checkers[i]
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
			n.Doubted++ // by an operator
		}
		if k.BlindReason != "" {
			n.Blind++
			named.Reason = k.BlindReason
			f.Blind = append(f.Blind, named)
		}
	}
	slices.SortFunc(f.Doubted, func(a, b attention.Named) int { return strings.Compare(a.Name, b.Name) })
}
