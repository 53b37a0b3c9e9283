package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/coordinator/catalog"
	"hdsd/eds"
	"hdsd/health"
)

// Each change of a Cluster makes each Envoy warm it anew, so changes are gathered, and a
// batch is bounded: a first start concerns all clusters.
const (
	takeoverEvery = time.Second
	takeoverBatch = 500

	// giveBackAfter exceeds the time that a fleet of checkers takes to restart.
	giveBackAfter = 5 * time.Minute

	// changedFor is how long a change counts as the reason that nobody can check a cluster, and
	// how long one that was given back for it stays so: its checkers may come and go for ever.
	changedFor = time.Minute
)

// Takeovers knows which clusters hdsd has taken over: their data planes do not check them
// any more. Before that, and when they are given back, data planes go on with the health
// checks that the cluster has itself.
type Takeovers struct {
	table *Table

	all     map[string]*takeover // of the present clusters that hdsd checks, by name
	ready   map[string]bool      // clusters to take over
	lacking map[string]bool      // clusters to give back, if they go on lacking something
	stored  map[string]bool      // clusters that were given back before a restart, and are not taken over at once

	readyAt   time.Time // when to look at ready; zero: it is empty
	lackingAt time.Time // when to look at lacking; zero: it is empty
}

// takeover is how far a cluster is.
type takeover struct {
	done     bool
	hasOwn   bool // it has health checks of its own
	unjudged int  // checked endpoints that never had a verdict
	stranded int  // checked endpoints that no checker is able to check

	since   time.Time // since when one of both is above 0, or a later time before which no endpoint lacks anything
	changed time.Time // when it last got endpoints without a verdict, or asked more of checkers; zero: not lately
	atOnce  bool      // by a change of the cluster, no checker is able to check it any more
	rests   time.Time // until then it is not taken over again
}

func newTakeovers(t *Table) *Takeovers {
	return &Takeovers{table: t, all: map[string]*takeover{}, ready: map[string]bool{}, lacking: map[string]bool{}}
}

func (x *takeover) lacks() bool { return x.unjudged+x.stranded > 0 }

// goOn reports whether data planes go on checking what they can of a cluster.
func (t *Takeovers) goOn(k *catalog.Cluster) bool {
	return k.HasOwnChecks() && (!t.isDone(k) || k.Exempting != nil)
}

// form returns the published form of a cluster. If hdsd decides nothing in it, that is the
// original with its health checks: data planes check for themselves. They also do so if they go
// on checking, or if hdsd decides only overrides.
func (t *Takeovers) form(k *catalog.Cluster) eds.Cluster {
	goOn := t.goOn(k)
	if !t.table.publishing.decidesVerdicts(k) {
		goOn = true
		if original := k.Original(); original != nil && (k.Shadow || !t.table.rows.overridden(k)) {
			return eds.Cluster{Name: k.Source.Name, Message: original}
		}
	}
	return eds.Cluster{Name: k.Source.Name, Message: k.Published(goOn), Checked: k.ByEDS() && !goOn}
}

func (t *Takeovers) isDone(k *catalog.Cluster) bool {
	x := t.all[k.Source.Name]
	return x != nil && x.done
}

// replace counts a new version of a cluster. A cluster that was taken over stays so. One that
// is new, or has new checks of its own, is taken over at once if each endpoint has a verdict,
// as after a restart, unless it was given back before. One without checks of its own always is.
func (t *Takeovers) replace(now time.Time, before, after *catalog.Cluster, rows *rows) {
	if after == nil || !after.IsChecked() {
		if before != nil {
			t.forgetCluster(before.Source.Name)
		}
		return
	}
	name := after.Source.Name
	x := t.all[name]
	isNew := x == nil
	if isNew {
		x = &takeover{}
		t.all[name] = x
	}
	hadOwn := x.hasOwn
	x.hasOwn, x.unjudged, x.stranded = after.HasOwnChecks(), 0, 0
	for _, id := range rows.checked[after] {
		r := &rows.all[id]
		t.date(r)
		if !r.judged {
			x.unjudged++
		}
		if r.stranded {
			x.stranded++
		}
	}
	if !isNew && (x.unjudged > 0 || !after.SameRequirements(before)) {
		x.changed = now
	}
	if !hadOwn || !x.hasOwn {
		x.done = !x.hasOwn || !x.lacks() && !t.stored[name]
	}
	if t.table.settled {
		delete(t.stored, name)
	}
	t.note(now, name, x)
}

// settle lets clusters be taken over that were given back before a restart: from now on it is
// known whether a checker is able to check them.
func (t *Takeovers) settle(now time.Time) {
	for name := range t.stored {
		if x := t.all[name]; x != nil {
			delete(t.stored, name)
			t.note(now, name, x)
		}
	}
}

func (t *Takeovers) forgetCluster(name string) {
	delete(t.stored, name)
	delete(t.all, name)
	delete(t.ready, name)
	delete(t.lacking, name)
}

// judged counts the first verdict of an endpoint.
func (t *Takeovers) judged(now time.Time, r *row) {
	if !r.checked() {
		return
	}
	t.date(r)
	name := r.cluster.Source.Name
	if x := t.all[name]; x != nil {
		if x.unjudged--; x.unjudged == 0 {
			x.changed = time.Time{}
		}
		t.note(now, name, x)
	}
}

// strand notes whether a checker is able to check an endpoint.
func (t *Takeovers) strand(now time.Time, r *row, stranded bool) {
	if !r.checked() || r.stranded == stranded {
		return
	}
	r.stranded = stranded
	t.date(r)
	name := r.cluster.Source.Name
	x := t.all[name]
	if x == nil {
		return
	}
	if stranded {
		x.stranded++
		x.atOnce = x.atOnce || !x.changed.IsZero() && now.Sub(x.changed) <= changedFor
	} else {
		x.stranded--
	}
	t.note(now, name, x)
}

// date notes since when a checked endpoint lacks something.
func (t *Takeovers) date(r *row) {
	switch {
	case r.judged && !r.stranded:
		r.lacks = 0
	case r.lacks == 0:
		r.lacks = max(1, t.table.now)
	}
}

// oldest returns since when one of the endpoints of a cluster lacks something; zero: none does.
func (t *Takeovers) oldest(name string) (since time.Time) {
	first := tenths(0)
	for _, id := range t.table.rows.checked[t.table.clusters.byName[name]] {
		if since := t.table.rows.all[id].lacks; since > 0 && (first == 0 || since < first) {
			first = since
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return t.table.time(first)
}

// note notes what is to be done with a cluster.
func (t *Takeovers) note(now time.Time, name string, x *takeover) {
	switch {
	case !x.lacks():
		x.since, x.atOnce = time.Time{}, false
	case x.since.IsZero():
		x.since = now
	}
	set(t.ready, name, !x.done && !x.lacks() && !t.stored[name])
	set(t.lacking, name, x.done && x.hasOwn && x.lacks())
	if due := now.Add(takeoverEvery); t.ready[name] && (t.readyAt.IsZero() || due.Before(t.readyAt)) {
		t.readyAt = due
	}
	if due := x.giveBackAt(); t.lacking[name] && (t.lackingAt.IsZero() || due.Before(t.lackingAt)) {
		t.lackingAt = due
	}
}

func set(names map[string]bool, name string, is bool) {
	if is {
		names[name] = true
	} else {
		delete(names, name)
	}
}

// nextDue returns when take or giveBack has something to do, if ever.
func (t *Takeovers) nextDue() (due time.Time, ok bool) {
	if due = t.readyAt; due.IsZero() || !t.lackingAt.IsZero() && t.lackingAt.Before(due) {
		due = t.lackingAt
	}
	return due, !due.IsZero()
}

// take takes clusters over that are ready, a batch at a time.
func (t *Takeovers) take(now time.Time) (names []string) {
	if t.readyAt.IsZero() || now.Before(t.readyAt) {
		return nil
	}
	t.readyAt = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(t.ready)) {
		x, due := t.all[name], now.Add(takeoverEvery)
		switch {
		case now.Before(x.rests):
			due = x.rests
		case len(names) < takeoverBatch:
			delete(t.ready, name)
			x.done = true
			names = append(names, name)
			continue
		}
		if t.readyAt.IsZero() || due.Before(t.readyAt) {
			t.readyAt = due
		}
	}
	return names
}

// giveBack gives clusters back that have lacked something for too long, a batch at a time.
func (t *Takeovers) giveBack(now time.Time) (names []string) {
	if t.lackingAt.IsZero() || now.Before(t.lackingAt) {
		return nil
	}
	t.lackingAt = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(t.lacking)) {
		x := t.all[name]
		due := x.giveBackAt()
		if !now.Before(due) && len(names) < takeoverBatch && !x.atOnce { // others may lack something by now
			x.since = t.oldest(name)
			due = x.giveBackAt()
		}
		switch {
		case now.Before(due):
		case len(names) < takeoverBatch:
			delete(t.lacking, name)
			x.done = false
			if x.atOnce {
				x.rests = now.Add(changedFor)
			}
			names = append(names, name)
			continue
		default:
			due = now.Add(takeoverEvery)
		}
		if t.lackingAt.IsZero() || due.Before(t.lackingAt) {
			t.lackingAt = due
		}
	}
	return names
}

func (x *takeover) giveBackAt() time.Time {
	if x.atOnce {
		return x.since
	}
	return x.since.Add(giveBackAfter)
}

// TakeOver takes over the clusters of which each checked endpoint has a verdict: their data
// planes need not check them any more. It gives back those that have endpoints that nobody
// is able to check, or that never had a verdict, for too long. In a freeze, nothing changes.
func (t *Takeovers) TakeOver(now time.Time) Effects {
	if due, ok := t.nextDue(); !ok || now.Before(due) || t.table.publishing.freeze != nil {
		return Effects{}
	}
	e := t.table.edit(now)
	e.decision.TakenOver, e.decision.GivenBack = t.take(now), t.giveBack(now)
	for _, name := range slices.Concat(e.decision.TakenOver, e.decision.GivenBack) {
		k := t.table.clusters.byName[name]
		if service := k.Source.ServiceName; k.Exempting != nil || len(t.table.clusters.byService[service]) > 1 {
			e.services[service] = true
		}
		if k.IgnoresNew() {
			for _, id := range t.table.rows.checked[k] {
				e.setHealth(id, &t.table.rows.all[id])
			}
		}
		if k.Exempting == nil {
			e.decision.Update.Clusters = append(e.decision.Update.Clusters, t.form(k))
		}
	}
	e.publish()
	return e.finish()
}

// Strand notes for which endpoints no checker is able to check them any more, and for which
// one is again.
func (t *Takeovers) Strand(now time.Time, stranded, checkable []health.EndpointID) {
	for _, id := range stranded {
		t.strand(now, &t.table.rows.all[id], true)
	}
	for _, id := range checkable {
		t.strand(now, &t.table.rows.all[id], false)
	}
}

// wireOf returns the assignment that data planes get under a name, given the first cluster
// that uses it. If they go on checking only what hdsd does not, it exempts all else.
func (t *Takeovers) wireOf(service string, first *catalog.Cluster) []byte {
	given, exempting := first.Assignment, false
	for _, k := range t.table.clusters.byService[service] {
		switch {
		case len(k.Source.Config.GetHealthChecks()) == 0:
		case !k.ByEDS(), !t.table.publishing.decidesVerdicts(k), !t.isDone(k), exempting && k.Exempting != nil && !given.Equal(k.Exempting):
			return first.Assignment.Wire()
		case k.Exempting != nil:
			given, exempting = k.Exempting, true
		}
	}
	return given.Wire()
}

// Takeover is how far hdsd has taken a cluster over.
type Takeover struct {
	Done     bool
	HasOwn   bool // data planes check it by its own health checks until it is
	Unjudged int  // checked endpoints that never had a verdict
	Stranded int  // checked endpoints that no checker is able to check

	// Since is since when one of these endpoints is one; of a cluster that is not taken over, since
	// when there always was one. Zero: there is none.
	Since time.Time
}

// Takeover returns how far hdsd has taken a cluster over, by its name.
func (t *Takeovers) Takeover(name string) Takeover {
	x := t.all[name]
	if x == nil {
		return Takeover{Done: true}
	}
	shown := Takeover{Done: x.done, HasOwn: x.hasOwn, Unjudged: x.unjudged, Stranded: x.stranded}
	if shown.Since = x.since; x.done && x.lacks() {
		shown.Since = t.oldest(name)
	}
	return shown
}
