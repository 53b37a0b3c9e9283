package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hdsd/api"
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/query"
	"hdsd/fleet"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/ruling"
)

// queryCore implements query.Core for the core.
type queryCore struct{ core *core }

// Ask implements query.Core.
func (a queryCore) Ask(ctx context.Context, read func(query.State)) error {
	return a.core.inspect(ctx, func() { read(view(a)) })
}

// Snapshot implements query.Core.
func (a queryCore) Snapshot(ctx context.Context) (*query.Snapshot, error) {
	return a.core.snapshots.Newer(ctx, a.core.done)
}

// NextSnapshot implements query.Core.
func (a queryCore) NextSnapshot(ctx context.Context) (*query.Snapshot, error) {
	return a.core.snapshots.Next(ctx, a.core.done)
}

// Done implements query.Core.
func (a queryCore) Done() <-chan struct{} { return a.core.done }

// Outside implements query.Options.
func (a queryCore) Outside(own string) string { return a.core.names.outside(own) }

// Version implements query.Options.
func (a queryCore) Version(own string) string { return a.core.names.version(own) }

// view implements query.State for the rooms. It changes nothing.
type view struct{ core *core }

// Names implements query.State.
func (v view) Names() []string { return v.core.Rulings.Names() }

// Cluster implements query.State.
func (v view) Cluster(name string) *catalog.Cluster { return v.core.Rulings.Cluster(name) }

// Frozen implements query.State.
func (v view) Frozen() bool { return v.core.Rulings.Frozen() != nil }

// BlockedReason implements query.State.
func (v view) BlockedReason(k *catalog.Cluster) string {
	if !v.core.Rollout.Blocked(k.Source.Name) {
		return ""
	}
	return v.core.Rollout.Reason(k.Source.Name)
}

// Status implements query.State.
func (v view) Status(e *catalog.Endpoint) health.Status { return v.core.Rulings.HealthOf(e) }

// StrandedReason implements query.State.
func (v view) StrandedReason(k *catalog.Cluster, e *catalog.Endpoint) string {
	if id, ok := v.core.Rulings.IDOf(e); ok && v.core.Fleet.Stranded(id) {
		return v.strandedReason(k, id)
	}
	return ""
}

// verdictPatience is the time after which endpoints without a verdict need attention.
const verdictPatience = time.Minute

// NotChecked implements query.State.
func (v view) NotChecked(k *catalog.Cluster) (reason string, since time.Time) {
	t := v.core.Rulings.Takeover(k.Source.Name)
	if v.core.Fleet.Settling() {
		return "", t.Since
	}
	count := t.Stranded
	if count > 0 {
		for i := range k.Endpoints {
			if reason = v.StrandedReason(k, &k.Endpoints[i]); reason != "" {
				break
			}
		}
	} else if count = t.Unjudged; count > 0 && time.Since(t.Since) > verdictPatience {
		reason = cmp.Or(v.core.Rollout.Reason(k.Source.Name), "no verdict on them yet")
	}
	if reason == "" {
		return "", t.Since
	}
	meanwhile := "nobody checks them"
	if t.HasOwn && !t.Done {
		meanwhile = "data planes go on checking the cluster themselves"
	}
	return fmt.Sprintf("%d of its %d endpoints: %s; %s", count, len(k.Endpoints), reason, meanwhile), t.Since
}

// Explain implements query.State.
func (v view) Explain(k *catalog.Cluster, e *catalog.Endpoint) api.EndpointHealth {
	out := api.EndpointHealth{Endpoint: e.Key(), Hostname: e.Hostname(), Version: k.Version()}
	if id, ok := v.core.Rulings.IDOf(e); !ok {
		out.Verdict.Reason = e.Reason()
	} else {
		ruling := v.core.Rulings.Ruling(id)
		out.Verdict = v.explainVotes(k, e, id, ruling.Judged)
		if o := ruling.Override; o != nil {
			out.Override, out.Voted = v.core.names.override(o), &health.Verdict{Status: out.Verdict.Status, Reason: out.Verdict.Reason}
			out.Verdict.Status, out.Verdict.Reason = o.Status, o.Explain()
		} else if since, held := v.core.Aggregator.Held(id); held {
			out.HeldSince = since
		}
		if !ruling.Since.IsZero() {
			out.Verdict.Since = ruling.Since
		}
	}
	if p, ok := v.core.Rulings.Published(k, e); ok && p.Status != out.Verdict.Status {
		out.Published = &api.Published{Status: p.Status, Reason: p.Reason()}
	}
	return out
}

// ExplainGone implements query.State.
func (v view) ExplainGone(key health.Endpoint) api.EndpointHealth {
	return api.EndpointHealth{Endpoint: key, Version: v.core.names.version(key.Cluster), Verdict: health.Verdict{Reason: ruling.InNoSource}}
}

// explainVotes returns the verdict of the votes on an endpoint. The reason also tells a lack of checkers.
func (v view) explainVotes(k *catalog.Cluster, e *catalog.Endpoint, id health.EndpointID, judged bool) health.Verdict {
	verdict := v.core.Rulings.Votes(id)
	verdict.Observations = v.withNewcomers(id, verdict.Observations)
	if e.Checked() == catalog.None {
		if judged {
			verdict.Reason = "held: " + verdict.Status.String() + " was the last verdict; " + e.Reason()
		} else {
			verdict.Reason = e.Reason()
		}
		return verdict
	}
	if v.core.Fleet.Stranded(id) {
		if len(verdict.Observations) == 0 {
			verdict.Reason = strings.TrimSuffix(v.strandedReason(k, id)+"; "+verdict.Reason, "; ")
		}
		return verdict
	}
	if untried := v.untriedReason(k, e.Checked(), &verdict); untried != "" {
		verdict.Reason = strings.TrimSuffix(untried+"; "+verdict.Reason, "; ")
	} else if short := v.shortReason(k, id); short != "" {
		verdict.Reason = strings.TrimPrefix(verdict.Reason+"; "+short, "; ")
	}
	return verdict
}

// withNewcomers adds the votes of checkers on probation, which do not count.
func (v view) withNewcomers(id health.EndpointID, seated []health.Observation) []health.Observation {
	added := v.core.Newcomers.Observations(id, "on probation")
	added = slices.DeleteFunc(added, func(o health.Observation) bool {
		return !v.core.Fleet.OnProbation(o.Checker) ||
			slices.ContainsFunc(seated, func(s health.Observation) bool { return s.Checker == o.Checker })
	})
	if len(added) == 0 {
		return seated
	}
	merged := append(slices.Clone(seated), added...)
	slices.SortFunc(merged, func(a, b health.Observation) int { return strings.Compare(a.Checker, b.Checker) })
	return merged
}

// untriedReason returns the reason for the lack of votes if no checker may get the endpoint yet.
func (v view) untriedReason(k *catalog.Cluster, index int, verdict *health.Verdict) string {
	for _, o := range verdict.Observations {
		if !o.Time.IsZero() {
			return ""
		}
	}
	return v.core.Rollout.UntriedReason(k, index)
}

// strandedReason returns the reason why no checker can check an endpoint.
func (v view) strandedReason(k *catalog.Cluster, id health.EndpointID) string {
	present := v.core.Fleet.Present()
	if present.Connected == 0 {
		return "not checked: no checker is connected"
	}
	if k, index := v.core.Rulings.At(id); index != catalog.None && v.core.Targets.Waits(k.Hashes[index]) {
		return v.withheldReason()
	}
	state := fmt.Sprintf("%d connected", present.Connected)
	if present.Silent > 0 {
		state += fmt.Sprintf(", %d of them silent", present.Silent)
	}
	switch _, lack := v.core.Fleet.Shortage(id); lack {
	case assign.TooFar:
		return fmt.Sprintf("not checked: none of the checkers (%s) that are able to check it, %s, is in its zone or region, and others may not: see zones and regions under assignment or its policy", state, k.Requirements())
	case assign.NoRoom:
		return fmt.Sprintf("not checked: all checkers (%s) that are able to check it, %s, are at their max_checks_per_second", state, k.Requirements())
	}
	return fmt.Sprintf("not checked: none of the checkers (%s) is able to check it, %s", state, k.Requirements())
}

// shortReason returns the reason why an endpoint has too few checkers; empty if it has enough, or if there are no
// other checkers.
func (v view) shortReason(k *catalog.Cluster, id health.EndpointID) string {
	missing, lack := v.core.Fleet.Shortage(id)
	if missing == 0 {
		return ""
	}
	text := fmt.Sprintf("it lacks %d of %d checkers", missing, max(k.Redundancy, 1))
	switch lack {
	case assign.NoRoom:
		return text + ": all others that are able are at their max_checks_per_second"
	case assign.TooFar:
		return text + ": no other that is able is in its zone or region, and others may not: see zones and regions under assignment or its policy"
	case assign.TooFew:
		return text + ": no other is able to check it, " + k.Requirements()
	}
	return ""
}

// Condition implements query.State.
func (v view) Condition(e *catalog.Endpoint) query.Condition {
	id, ok := v.core.Rulings.IDOf(e)
	if !ok {
		return query.Condition{}
	}
	ruled := v.core.Rulings.Ruling(id)
	condition := query.Condition{Status: ruled.Health, Stranded: v.core.Fleet.Stranded(id)}
	if condition.Voters, condition.Since = v.core.Aggregator.Standing(id); !ruled.Since.IsZero() {
		condition.Since = ruled.Since
	}
	if condition.Overridden = ruled.Override != nil; !condition.Overridden {
		condition.HeldSince, _ = v.core.Aggregator.Held(id)
	}
	return condition
}

// Panic implements query.State.
func (v view) Panic(k *catalog.Cluster) (reason string, since time.Time) {
	return v.core.alarms.panics.Explain(k.Source.Name)
}

// Crew implements query.State.
func (v view) Crew() query.Crew {
	return query.Crew{Unwatched: v.core.Fleet.Figures().UnwatchedSince, Lost: len(v.core.Troubles.Lost), TooFew: v.core.alarms.tooFew, ProbeLimit: v.core.alarms.probeLimit.Named}
}

// Checkers implements query.State.
func (v view) Checkers() []query.Checker {
	var found []query.Checker
	listed := map[string]bool{}
	for known := range v.core.Fleet.Checkers() {
		k := query.Checker{SilenceReason: v.core.Fleet.SilenceReason(known.ID), DoubtReason: v.core.Aggregator.DoubtReason(known.ID), Checker: api.Checker{
			Checker: known.Checker, Connected: known.Connected, LastReport: known.LastReport,
			Share: known.Plan.Share, ChecksPerSecond: float64(known.Plan.Rate) / 1000, PlanDigest: known.Plan.Digest, AssignedEndpoints: known.Plan.Endpoints,
			BlindReason: v.core.Aggregator.BlindReason(known.ID),
			Operator:    shownTrust(known.ID, v.core.Trust.Get(known.ID)), TroubledSince: v.core.Troubles.TroubledSince(known.ID),
		}}
		v.setStream(&k)
		if p := known.Probation; p != nil {
			k.Probation = &api.Probation{Since: p.Since, Reason: v.probationReason(p)}
		}
		for _, cut := range v.core.Aggregator.CutPaths(known.Locality) {
			k.CutPaths = append(k.CutPaths, api.CutPath{To: cut.To, Reason: cut.Reason})
		}
		if lost, ok := v.core.Troubles.Lost[known.ID]; ok {
			k.Lost = &api.Lost{Since: lost.Since, Reason: "its stream ended, or it stopped fetching; its seats are kept in case it comes back"}
		}
		listed[known.ID] = true
		found = append(found, k)
	}
	for id, lost := range v.core.Troubles.Lost {
		if listed[id] {
			continue
		}
		lost.ID = id
		found = append(found, query.Checker{Checker: api.Checker{Checker: lost.Checker, LastReport: lost.LastReport, Lost: &api.Lost{
			Since: lost.Since, Gone: true, Reason: "its stream ended, or it stopped fetching, and it did not come back; others check its endpoints",
		}}})
	}
	return found
}

// setStream sets the replica that has the stream of a checker, and the state of a stream of another replica.
func (v view) setStream(k *query.Checker) {
	if v.core.replication == nil {
		return
	}
	s, ok := v.core.replication.Stream(k.ID)
	if k.Replica = s.Replica; !ok || s.Replica == v.core.replication.id {
		return
	}
	k.Stream = &hds.State{Connected: k.Connected, Specifier: hds.NotSent, Followed: s.Followed, Silent: s.Silent, LastReport: s.Heard}
	switch {
	case s.Synced:
		k.Stream.Specifier = hds.Synced
	case s.Sent:
		k.Stream.Specifier = hds.Sent
	}
}

// Paths implements query.State.
func (v view) Paths() []api.Path {
	var found []api.Path
	for _, p := range v.core.Aggregator.Paths() {
		found = append(found, api.Path(p))
	}
	return found
}

// probationReason returns the progress of a checker on probation as text.
func (v view) probationReason(p *fleet.Progress) string {
	if !p.Wrong.IsZero() {
		return "it disagrees with established checkers since " + p.Wrong.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("it has agreed with established checkers for %s of %s", p.Agreed.Round(time.Second), v.core.Rules.Probation)
}

// Lagging implements query.State. Blocked versions of clusters do not count.
func (v view) Lagging() map[string]bool {
	found := map[string]bool{}
	for k := range v.core.Fleet.Checkers() {
		if v.core.Fleet.Gathering(k.ID) || v.core.Rollout.Pace.Waits(k.ID) || v.core.Rollout.Behind(k.ID) {
			found[k.ID] = true
		}
	}
	return found
}

// conditions returns the conditions of checked endpoints in their order; nil if hdsd stops.
func (c *core) conditions(ctx context.Context, endpoints []*catalog.Endpoint) []feed.Condition {
	found := make([]feed.Condition, len(endpoints))
	if c.inspect(ctx, func() {
		for i, e := range endpoints {
			condition := view{c}.Condition(e)
			found[i] = feed.Condition{Status: condition.Status, Voted: condition.Voters > 0}
		}
	}) != nil {
		return nil
	}
	return found
}
