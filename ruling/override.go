package ruling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
)

// Refusal is the error for a request of an operator that is impossible.
type Refusal struct {
	NotFound       bool // its target does not exist
	UnknownCluster bool // that target is a cluster
	Text           string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

func notFound(format string, args ...any) error {
	return &Refusal{NotFound: true, Text: fmt.Sprintf(format, args...)}
}

// TargetOf names the scope of an override.
func TargetOf(scope health.Endpoint) string {
	name := strings.TrimSpace(scope.Cluster + " " + scope.Address)
	if l := scope.Locality; l != (health.Locality{}) {
		name = strings.TrimSpace(name + " in " + strings.TrimRight(l.Region+"/"+l.Zone+"/"+l.SubZone, "/"))
	}
	return name
}

func impossible(format string, args ...any) error {
	return &Refusal{Text: fmt.Sprintf(format, args...)}
}

// SetOverride sets an override, and returns it with the replaced one, if any. An equal override
// stays as it is, and is returned as both. The error is a *Refusal.
func (t *Table) SetOverride(now time.Time, requested log.Override) (set Override, replaced *Override, _ Effects, err error) {
	if err := t.Overridable(&requested.Scope); err != nil {
		return set, nil, Effects{}, err
	}
	if len(t.overrides.byScope) >= MaxOverrides && t.overrides.byScope[requested.Scope] == nil {
		return set, nil, Effects{}, impossible("there are %d overrides, the most allowed: clear some, or override a whole cluster or locality", MaxOverrides)
	}
	requested.Since, requested.Until = now.UTC().Round(0), requested.Until.UTC().Round(0)
	if current := t.overrides.byScope[requested.Scope]; current != nil && current.says(&requested) {
		unchanged := *current // a copy for the caller
		return unchanged, &unchanged, Effects{}, nil
	}
	o := &Override{Override: requested}
	replaced = t.overrides.put(o)
	e := t.edit(now)
	change := log.OverrideChange{Override: requested, Kind: log.Set, By: requested.Author}
	if replaced != nil {
		before := replaced.Override // a copy for the log
		change.Replaced = &before
	}
	e.decision.Overrides = []log.OverrideChange{change}
	e.nextDecision()
	includeExcluded(e, &requested.Scope)
	e.overlay(t.within(&requested.Scope), "")
	return *o, replaced, e.finish(), nil
}

// includeExcluded adds the excluded endpoints that a new override decides.
func includeExcluded(e *edit, scope *health.Endpoint) {
	for k := range e.clusters.within(scope) {
		if len(k.Excluded) > 0 {
			e.addExcluded(nil, k)
			e.services[k.Source.ServiceName] = true
		}
	}
	e.publish()
	ruled := e.effects.Unannounced // excluded endpoints have no votes to explain
	e.effects.Unannounced = nil
	e.announce(ruled, "")
}

// ClearOverrides ends the override with exactly this scope, or all within the scope, and
// returns them. The error is a *Refusal.
func (t *Table) ClearOverrides(now time.Time, scope health.Endpoint, all bool, author string) ([]Override, Effects, error) {
	var ended []*Override
	if !all {
		o := t.overrides.remove(scope)
		if o == nil {
			return nil, Effects{}, notFound("no override has exactly this scope: 'hdsd override list' shows all overrides")
		}
		ended = []*Override{o}
	} else {
		for _, narrower := range slices.SortedFunc(maps.Keys(t.overrides.byScope), health.Endpoint.Compare) {
			if covers(&scope, &narrower) || covers(&scope, t.clusters.outside(narrower)) {
				ended = append(ended, t.overrides.remove(narrower))
			}
		}
	}
	effects := t.end(now, ended, log.Cleared, author)
	shown := make([]Override, len(ended))
	for i, o := range ended {
		shown[i] = *o
	}
	return shown, effects, nil
}

// Expire ends overrides after their time. It does nothing before Start, nor in a freeze: data
// planes would not get the verdict that replaces the override.
func (t *Table) Expire(now time.Time) Effects {
	if !t.started || t.publishing.freeze != nil {
		return Effects{}
	}
	return t.end(now, t.overrides.expire(now), log.Expired, "the clock")
}

// end applies the end of removed overrides.
func (t *Table) end(now time.Time, ended []*Override, kind log.ChangeKind, author string) Effects {
	if len(ended) == 0 {
		return Effects{}
	}
	e := t.edit(now)
	for _, o := range ended {
		e.decision.Overrides = append(e.decision.Overrides, log.OverrideChange{Override: o.Override, Kind: kind, By: author})
	}
	e.nextDecision()
	var ids []health.EndpointID
	if len(ended) == 1 {
		ids = t.within(&ended[0].Scope)
	} else {
		for id := range t.rows.byID {
			if o := t.rows.byID[id].override(); o != nil && t.overrides.byScope[o.Scope] != o {
				ids = append(ids, health.EndpointID(id))
			}
		}
	}
	end := "expired"
	if kind == log.Cleared {
		end = "cleared by " + author
	}
	e.overlay(ids, end)
	return e.finish()
}

// overlay finds the override that decides each endpoint, and announces changes. It drops
// endpoints that are neither checked nor overridden any more.
func (e *edit) overlay(ids []health.EndpointID, end string) {
	overlays := map[*Override]*overlay{}
	var ruled []Ruled
	for _, id := range ids {
		r := &e.rows.byID[id]
		previous, current := r.override(), e.overrides.find(r.cluster, r.key())
		if previous == current {
			continue
		}
		if overlays[current] == nil {
			overlays[current] = &overlay{current, e.now}
		}
		ruled = append(ruled, Ruled{id: id, previousHealth: r.health(), previous: previous})
		e.rows.overlay(r, overlays[current])
		if r.isUndecided() {
			e.rows.judge(r, health.Unknown, false)
		}
	}
	e.announce(ruled, end)
	for _, change := range ruled {
		if r := &e.rows.byID[change.id]; r.isUndecided() {
			e.services[r.cluster.Source.ServiceName] = true
			e.drop(change.id, r)
		}
	}
	e.publish()
}

// Announce publishes and records the overrides that began or ended while hdsd was down. It
// takes Effects.Unannounced of Apply.
func (t *Table) Announce(now time.Time, ruled []Ruled) Effects {
	e := t.edit(now)
	e.announce(ruled, "")
	return e.finish()
}

// announce publishes and records the override of each endpoint, or its end. It records an
// override to the same health too, since that explains why an endpoint did not go down.
func (e *edit) announce(ruled []Ruled, end string) {
	if len(ruled) == 0 {
		return
	}
	d := &e.decision
	d.Health, d.Transitions, d.Voted = make([]publish.Health, 0, len(ruled)), make([]health.Transition, len(ruled)), map[health.Hash]*health.Verdict{}
	ids := make([]health.EndpointID, len(ruled))
	for i := range ruled {
		id := ruled[i].id
		r := &e.rows.byID[id]
		verdict := e.votes(r, &ruled[i])
		ids[i] = id
		t := &d.Transitions[i]
		*t = health.Transition{Time: e.now, Endpoint: r.key(), From: ruled[i].previousHealth, To: r.health(), Observations: verdict.Observations}
		if o := r.override(); o != nil {
			t.Reason = o.Explain()
			d.Voted[r.hash] = &health.Verdict{Status: r.status, Since: verdict.Since}
		} else {
			t.Reason = ruled[i].endReason(end) + ": " + verdict.Reason
			d.Unvoted = append(d.Unvoted, r.hash)
		}
		target := &d.Health
		if e.publishing.freeze != nil && !e.publishing.decides(r.cluster)(r) {
			target = &d.Withdrawn // so that data planes get no verdict
		}
		*target = append(*target, publish.Health{ID: id, Status: e.publishing.health(r)})
	}
	if e.publishing.freeze != nil {
		e.republish(ruled)
	}
	d.Zones = e.zoneHealth(e.zoneViews.views(ids))
	e.publish()
}

// republish publishes the clusters and assignments of some endpoints again: in a freeze, hdsd
// decides exactly the endpoints with an override.
func (e *edit) republish(ruled []Ruled) {
	republished := map[*catalog.Cluster]bool{}
	for i := range ruled {
		k := e.rows.byID[ruled[i].id].cluster
		if republished[k] {
			continue
		}
		republished[k], e.services[k.Source.ServiceName] = true, true
		if form := e.form(k); form.Message != nil {
			e.decision.Update.Clusters = append(e.decision.Update.Clusters, form)
		}
	}
}

// votes returns the verdict of the votes, with its reason.
func (e *edit) votes(r *row, ruled *Ruled) health.Verdict {
	var verdict health.Verdict
	if ruled.voted != nil {
		verdict = *ruled.voted
	} else {
		verdict = e.Votes(ruled.id)
	}
	if !r.checked() {
		verdict.Reason = "it is not checked"
	}
	return verdict
}

// endReason returns the reason in the transition at the end of an override.
func (r *Ruled) endReason(end string) string {
	if r.previous == nil { // the override ended while hdsd was down
		return "no longer overridden"
	}
	return "no longer " + r.previous.verb() + " (" + end + ")"
}

// within returns the ids of the endpoints within a scope.
func (t *Table) within(scope *health.Endpoint) (ids []health.EndpointID) {
	if scope.Cluster != "" {
		for k := range t.clusters.within(scope) {
			for i := range k.Endpoints {
				e := &k.Endpoints[i]
				if id, ok := t.IDOf(e); ok && coversIn(k, scope, e.Key()) {
					ids = append(ids, id)
				}
			}
		}
		return ids
	}
	for id := range t.rows.byID {
		if r := &t.rows.byID[id]; r.cluster != nil {
			if key := r.key(); covers(scope, &key) {
				ids = append(ids, health.EndpointID(id))
			}
		}
	}
	return ids
}

// Overridable returns a *Refusal if an override with this scope would have no effect.
func (t *Table) Overridable(scope *health.Endpoint) error {
	if scope.Cluster != "" && !t.clusters.has(scope.Cluster) {
		return &Refusal{NotFound: true, UnknownCluster: true, Text: fmt.Sprintf("unknown cluster %q", scope.Cluster)}
	}
	var refusal error
	for k := range t.clusters.within(scope) {
		for i := range k.Endpoints {
			e := &k.Endpoints[i]
			if !coversIn(k, scope, e.Key()) {
				continue
			}
			if canOverride(k, e) {
				return nil
			}
			refusal = impossible("%s %s is published as its source gives it, so only its source can drain it: %s", k.Title(), e.Address(), e.Reason())
		}
	}
	if refusal == nil {
		refusal = notFound("there is no such endpoint (%s): 'hdsd endpoints' lists all with their localities", TargetOf(*scope))
	}
	return refusal
}

// canOverride reports whether an override of an endpoint can be published. An endpoint that is
// not checked requires checked ones in its cluster.
func canOverride(k *catalog.Cluster, e *catalog.Endpoint) bool {
	return k.IsChecked() && (e.Checked() != catalog.None || e.InAssignment)
}
