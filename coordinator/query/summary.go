package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

	Refusing attention.Named // why data planes refuse a response; no name; without a reason, none does

	// The caller whose message, or response, waits longest for room; without a reason, none waits long.
	Waiting, WaitingAnswers attention.Named
}

// Condition is how an endpoint is.
type Condition struct {
	Status    health.Status
	Since     time.Time // zero: not known
	HeldSince time.Time // zero: a believed vote or an override stands behind the status
	Voters    int       // believed votes, 3 at most

	Overridden bool
	Stranded   bool // no checker can check it
}

// Crew is what the State knows of checkers as a whole.
type Crew struct {
	Unwatched  time.Time       // since when no checker is connected; zero if one is, or hdsd settles
	Lost       int             // in the last 24 hours
	TooFew     attention.Named // why those that are left have no majority of the planned votes; no name
	ProbeLimit attention.Named // why endpoints wait for room at their address; no name
}

// Status implements api.Backend.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return api.Status{}, err
	}
	may, s := b.visible(ctx), summary{zones: map[string]*attention.Group{}}
	for _, r := range now.rows {
		if may.Has(r.name()) {
			s.add(r)
		}
	}
	s.facts.Unwatched, s.facts.TooFew, s.out.Checkers.Lost = now.crew.Unwatched, now.crew.TooFew, now.crew.Lost
	checkers := b.checkersOf(ctx, now)
	s.addCheckers(checkers)
	s.out.Zones = zonesOf(checkers)
	if s.out.History, err = b.history(); err != nil {
		return api.Status{}, err
	}
	process := b.Process()
	if process.NotReady != "" && !may.All() {
		process.NotReady = hiddenReason
	}
	s.out.Started = process.Started
	s.out.Version, s.out.NotReady, s.out.Shadow, s.out.Frozen = process.Version, process.NotReady, process.Shadow, process.Frozen != nil
	f := &s.facts
	f.NotReady = attention.Named{Reason: process.NotReady, Since: process.Started}
	if freeze := process.Frozen; freeze != nil {
		f.Frozen = attention.Named{Reason: freeze.String(), Since: freeze.Since}
	}
	f.History = attention.Named{Reason: process.Failing, Since: process.FailingSince}
	if may.All() {
		f.Refusing = process.Refusing
		f.Waiting, f.WaitingAnswers, f.ProbeLimit = process.Waiting, process.WaitingAnswers, now.crew.ProbeLimit
		b.addWhole(&s.out)
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
		s.out.Attention = append(s.out.Attention, api.Attention{
			Kind: string(item.Kind), Cluster: item.Cluster, Zone: item.Zone, Text: item.Text, Command: item.Command, Since: item.Since,
		})
	}
	return s.out, nil
}

// summary is what the clusters come to.
type summary struct {
	zones map[string]*attention.Group
	facts attention.Facts
	out   api.Status
}

// add counts a cluster.
func (s *summary) add(r *row) {
	k := r.cluster
	for i := range r.places {
		p := &r.places[i]
		s.out.Endpoints.Add(&p.counts)
		if k.IsChecked() {
			s.addToZone(p)
		}
	}
	if s.out.Endpoints.Held += r.held; r.held > 0 && (s.facts.HeldSince.IsZero() || r.heldSince.Before(s.facts.HeldSince)) {
		s.facts.HeldSince = r.heldSince
	}
	s.facts.Held = s.out.Endpoints.Held
	if !k.IsChecked() {
		if k.IsUncheckable() {
			s.out.Clusters.Unchecked++
			s.facts.Unchecked = append(s.facts.Unchecked, attention.Named{Name: r.name(), Reason: uncheckableReason(k)})
		}
		return
	}
	for n, endpoints := range r.voters {
		s.out.Endpoints.Voters[n] += endpoints
	}
	if len(k.Endpoints) == 0 {
		return
	}
	if r.lacks.Reason != "" {
		s.facts.Unchecked = append(s.facts.Unchecked, r.lacks)
	}
	judged := r.judge()
	counts := &s.out.Clusters
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

// uncheckableReason says why hdsd may check no endpoint of a cluster.
func uncheckableReason(k *catalog.Cluster) string {
	all := k.Exclusions()
	text := "none of its endpoints may be checked: " + all[0].Reason
	if n := len(all); n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	return text
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
