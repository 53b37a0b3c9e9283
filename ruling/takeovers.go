package ruling

import (
	"maps"
	"slices"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/publish"
)

// Each change of a Cluster makes each Envoy warm it anew. So changes are gathered, and a batch
// is bounded: a first start concerns all clusters.
const (
	takeoverEvery = time.Second
	takeoverBatch = 500

	// giveBackAfter exceeds the time in which a fleet of checkers restarts.
	giveBackAfter = 5 * time.Minute

	// changedFor is the time for which a change counts as the reason that no checker is able to
	// check a cluster. A cluster given back for it stays so for as long: its checkers may come
	// and go for ever.
	changedFor = time.Minute
)

// takeovers tracks the clusters that hdsd has taken over: their data planes do not check them
// any more. Before that, and when they are given back, data planes use the cluster's own health
// checks.
type takeovers struct {
	byName  map[string]*takeover // of the present clusters that hdsd checks, by name
	ready   map[string]bool      // clusters to take over
	lacking map[string]bool      // clusters to give back, if they still lack something later

	keptGivenBack map[string]bool // clusters that were given back before a restart, and are not taken over at once
	keptTakenOver map[string]bool // clusters that were taken over before a restart, and stay so
	isComplete    bool            // keptTakenOver has all of them; earlier releases stored none
	isFollower    bool            // keptTakenOver has all clusters that another table has taken over, also present ones

	readyAt   time.Time // when to look at ready; zero: it is empty
	lackingAt time.Time // when to look at lacking; zero: it is empty
}

// takeover is the progress of a cluster's takeover.
type takeover struct {
	done     bool
	hasOwn   bool // the cluster has health checks of its own
	unjudged int  // checked endpoints that never had a verdict
	stranded int  // checked endpoints that no checker is able to check

	lackingSince time.Time // start of the time with such an endpoint; giveBack moves it to the start of the oldest present lack
	changed      time.Time // time of its latest endpoints without a verdict, or of new requirements for checkers; zero: not lately
	atOnce       bool      // a change of the cluster left no able checker
	restEnd      time.Time // end of the time in which it is not taken over again
}

func newTakeovers() *takeovers {
	return &takeovers{byName: map[string]*takeover{}, ready: map[string]bool{}, lacking: map[string]bool{}, keptGivenBack: map[string]bool{}, keptTakenOver: map[string]bool{}}
}

func (x *takeover) lacks() bool { return x.unjudged+x.stranded > 0 }

// goOn reports whether data planes continue their own checks of a cluster.
func (t *Table) goOn(k *catalog.Cluster) bool {
	return k.HasOwnChecks() && (!t.takeovers.isDone(k) || k.Exempting != nil)
}

// form returns the published form of a cluster. If hdsd decides nothing in it, or only
// overrides, or if data planes continue their own checks, that is the original with its health
// checks.
func (t *Table) form(k *catalog.Cluster) publish.Cluster {
	goOn := t.goOn(k)
	if !t.publishing.decidesVerdicts(k) {
		goOn = true
		if original := k.Original(); original != nil && (k.Shadow || !t.rows.overridden(k)) {
			return publish.Cluster{Name: k.Source.Name, Message: original}
		}
	}
	return publish.Cluster{Name: k.Source.Name, Message: k.Published(goOn), Checked: k.ByEDS() && !goOn}
}

func (t *takeovers) isDone(k *catalog.Cluster) bool {
	x := t.byName[k.Source.Name]
	return x != nil && x.done
}

// replaceTakeover counts a new version of a cluster. A cluster that was taken over stays so, also
// over a restart, unless it loses its own checks meanwhile. Once hdsd has settled, a new cluster, or
// one with new checks of its own, is taken over at once if each endpoint has a verdict. A cluster
// without own checks always is.
func (e *edit) replaceTakeover(previous, next *catalog.Cluster) {
	t, now := e.Table, e.now
	if next == nil || !next.IsChecked() {
		if previous != nil && t.takeovers.forgetCluster(previous.Source.Name, t.settled) {
			e.decision.Removed = append(e.decision.Removed, previous.Source.Name)
		}
		return
	}
	name := next.Source.Name
	x := t.takeovers.byName[name]
	isNew := x == nil
	if isNew {
		x = &takeover{}
		t.takeovers.byName[name] = x
	}
	hadOwn := x.hasOwn
	x.hasOwn, x.unjudged, x.stranded = next.HasOwnChecks(), 0, 0
	for _, id := range t.rows.checked[next] {
		r := &t.rows.byID[id]
		t.date(r)
		if !r.judged {
			x.unjudged++
		}
		if r.stranded {
			x.stranded++
		}
	}
	if !isNew && (x.unjudged > 0 || !next.SameRequirements(previous)) {
		x.changed = now
	}
	switch {
	case t.takeovers.isFollower:
		x.done = !x.hasOwn || t.takeovers.keptTakenOver[name]
	case !hadOwn || !x.hasOwn:
		keeps, waits := t.takeovers.keptTakenOver[name], !t.settled && t.takeovers.isComplete
		x.done = !x.hasOwn || keeps || !x.lacks() && !waits && !t.takeovers.keptGivenBack[name]
		switch {
		case !x.hasOwn && (hadOwn || keeps):
			e.decision.Removed = append(e.decision.Removed, name) // new checks of its own count as those of a new cluster
		case x.hasOwn && x.done && !keeps:
			e.decision.TakenOver = append(e.decision.TakenOver, name)
		}
	}
	if !t.takeovers.isFollower {
		delete(t.takeovers.keptTakenOver, name)
	}
	if t.settled {
		delete(t.takeovers.keptGivenBack, name)
	}
	t.takeovers.note(now, name, x)
}

// settle allows takeovers of clusters that were given back before a restart: from now on it is
// known whether a checker is able to check them.
func (t *takeovers) settle(now time.Time) {
	for name := range t.keptGivenBack {
		if x := t.byName[name]; x != nil {
			delete(t.keptGivenBack, name)
			t.note(now, name, x)
		}
	}
}

// conclude forgets the clusters from before a restart that hdsd does not check any more, unless they are
// hidden, and returns their names in order.
func (t *takeovers) conclude(hidden func(cluster string) bool) (removed []string) {
	for _, names := range []map[string]bool{t.keptTakenOver, t.keptGivenBack} {
		for name := range names {
			if t.byName[name] == nil && !hidden(name) {
				delete(names, name)
				removed = append(removed, name)
			}
		}
	}
	slices.Sort(removed)
	return slices.Compact(removed)
}

// forgetCluster forgets a cluster that hdsd does not check any more, and reports whether that is
// final. Before hdsd has settled, the cluster may come back. So it remembers that the cluster was taken
// over or given back, until conclude.
func (t *takeovers) forgetCluster(name string, settled bool) bool {
	x := t.byName[name]
	if x == nil {
		return false
	}
	delete(t.byName, name)
	delete(t.ready, name)
	delete(t.lacking, name)
	if t.isFollower {
		return false
	}
	if keeps := x.done && x.hasOwn; !settled && (keeps || t.keptGivenBack[name]) {
		set(t.keptTakenOver, name, keeps)
		return false
	}
	delete(t.keptGivenBack, name)
	delete(t.keptTakenOver, name)
	return true
}

// judged counts the first verdict of an endpoint.
func (t *Table) judged(now time.Time, r *row) {
	if !r.checked() {
		return
	}
	t.date(r)
	name := r.cluster.Source.Name
	if x := t.takeovers.byName[name]; x != nil {
		if x.unjudged--; x.unjudged == 0 {
			x.changed = time.Time{}
		}
		t.takeovers.note(now, name, x)
	}
}

// strand notes whether a checker is able to check an endpoint.
func (t *Table) strand(now time.Time, r *row, stranded bool) {
	if !r.checked() || r.stranded == stranded {
		return
	}
	r.stranded = stranded
	t.date(r)
	name := r.cluster.Source.Name
	x := t.takeovers.byName[name]
	if x == nil {
		return
	}
	if stranded {
		x.stranded++
		x.atOnce = x.atOnce || !x.changed.IsZero() && now.Sub(x.changed) <= changedFor
	} else {
		x.stranded--
	}
	t.takeovers.note(now, name, x)
}

// date notes the time since when a checked endpoint lacks something.
func (t *Table) date(r *row) {
	switch {
	case r.judged && !r.stranded:
		r.lacks = 0
	case r.lacks == 0:
		r.lacks = max(1, t.now)
	}
}

// oldest returns the earliest time since when an endpoint of a cluster lacks something; zero:
// none does.
func (t *Table) oldest(name string) (earliest time.Time) {
	first := tenths(0)
	for _, id := range t.rows.checked[t.clusters.byName[name]] {
		if start := t.rows.byID[id].lacks; start > 0 && (first == 0 || start < first) {
			first = start
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return t.time(first)
}

// note queues a cluster for takeover or for giving back.
func (t *takeovers) note(now time.Time, name string, x *takeover) {
	switch {
	case !x.lacks():
		x.lackingSince, x.atOnce = time.Time{}, false
	case x.lackingSince.IsZero():
		x.lackingSince = now
	}
	set(t.ready, name, !x.done && !x.lacks() && !t.keptGivenBack[name])
	set(t.lacking, name, x.done && x.hasOwn && x.lacks())
	if due := now.Add(takeoverEvery); t.ready[name] && (t.readyAt.IsZero() || due.Before(t.readyAt)) {
		t.readyAt = due
	}
	if due := x.giveBackAt(); t.lacking[name] && (t.lackingAt.IsZero() || due.Before(t.lackingAt)) {
		t.lackingAt = due
	}
}

func set(names map[string]bool, name string, member bool) {
	if member {
		names[name] = true
	} else {
		delete(names, name)
	}
}

// nextDue returns the next time at which takeReady or giveBack has work, if any.
func (t *takeovers) nextDue() (due time.Time, ok bool) {
	if due = t.readyAt; due.IsZero() || !t.lackingAt.IsZero() && t.lackingAt.Before(due) {
		due = t.lackingAt
	}
	return due, !due.IsZero()
}

// takeReady takes over clusters that are ready, a batch at a time.
func (t *takeovers) takeReady(now time.Time) (names []string) {
	if t.readyAt.IsZero() || now.Before(t.readyAt) {
		return nil
	}
	t.readyAt = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(t.ready)) {
		x, due := t.byName[name], now.Add(takeoverEvery)
		switch {
		case now.Before(x.restEnd):
			due = x.restEnd
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

// giveBack gives back clusters that have lacked something for too long, a batch at a time.
func (t *Table) giveBack(now time.Time) (names []string) {
	if t.takeovers.lackingAt.IsZero() || now.Before(t.takeovers.lackingAt) {
		return nil
	}
	t.takeovers.lackingAt = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(t.takeovers.lacking)) {
		x := t.takeovers.byName[name]
		due := x.giveBackAt()
		if !now.Before(due) && len(names) < takeoverBatch && !x.atOnce { // others may lack something by now
			x.lackingSince = t.oldest(name)
			due = x.giveBackAt()
		}
		switch {
		case now.Before(due):
		case len(names) < takeoverBatch:
			delete(t.takeovers.lacking, name)
			x.done = false
			if x.atOnce {
				x.restEnd = now.Add(changedFor)
			}
			names = append(names, name)
			continue
		default:
			due = now.Add(takeoverEvery)
		}
		if t.takeovers.lackingAt.IsZero() || due.Before(t.takeovers.lackingAt) {
			t.takeovers.lackingAt = due
		}
	}
	return names
}

func (x *takeover) giveBackAt() time.Time {
	if x.atOnce {
		return x.lackingSince
	}
	return x.lackingSince.Add(giveBackAfter)
}

// TakeOver takes over clusters in which each checked endpoint has a verdict: their data planes
// need not check them any more. It gives back clusters with endpoints that, for too long, no
// checker is able to check or that never had a verdict. In a freeze, nothing changes.
func (t *Table) TakeOver(now time.Time) Effects {
	if due, ok := t.takeovers.nextDue(); !ok || now.Before(due) || t.publishing.freeze != nil {
		return Effects{}
	}
	e := t.edit(now)
	e.decision.TakenOver, e.decision.GivenBack = t.takeovers.takeReady(now), t.giveBack(now)
	publishTakeovers(e, slices.Concat(e.decision.TakenOver, e.decision.GivenBack))
	e.publish()
	return e.finish()
}

// publishTakeovers publishes clusters that are taken over or given back.
func publishTakeovers(e *edit, names []string) {
	for _, name := range names {
		k := e.clusters.byName[name]
		if service := k.Source.ServiceName; k.Exempting != nil || len(e.clusters.byService[service]) > 1 {
			e.services[service] = true
		}
		if k.IgnoresNew() {
			for _, id := range e.rows.checked[k] {
				e.setHealth(id, &e.rows.byID[id])
			}
		}
		if k.Exempting == nil {
			e.decision.Update.Clusters = append(e.decision.Update.Clusters, e.form(k))
		}
	}
}

// Strand notes endpoints that no checker is able to check any more, and those that one is able
// to check again.
func (t *Table) Strand(now time.Time, stranded, checkable []health.EndpointID) {
	for _, id := range stranded {
		t.strand(now, &t.rows.byID[id], true)
	}
	for _, id := range checkable {
		t.strand(now, &t.rows.byID[id], false)
	}
}

// wireOf returns the assignment that data planes get under a name, given the first cluster that
// uses it. If they continue their own checks, it exempts the endpoints that hdsd checks.
func (t *Table) wireOf(service string, first *catalog.Cluster) []byte {
	given, exempting := first.Assignment, false
	for _, k := range t.clusters.byService[service] {
		switch {
		case len(k.Source.Config.GetHealthChecks()) == 0:
		case !k.ByEDS(), !t.publishing.decidesVerdicts(k), !t.takeovers.isDone(k), exempting && k.Exempting != nil && !given.Equal(k.Exempting):
			return first.Assignment.Wire()
		case k.Exempting != nil:
			given, exempting = k.Exempting, true
		}
	}
	return given.Wire()
}

// Takeover is the progress of a cluster's takeover.
type Takeover struct {
	Done     bool
	HasOwn   bool // data planes use its own health checks until it is done
	Unjudged int  // checked endpoints that never had a verdict
	Stranded int  // checked endpoints that no checker is able to check

	// Since is the start of the time with any such endpoint; for a cluster that is not taken
	// over, of the time that always had one. Zero: there is none.
	Since time.Time
}

// Takeover returns the progress of a cluster's takeover, by its name.
func (t *Table) Takeover(name string) Takeover {
	x := t.takeovers.byName[name]
	if x == nil {
		return Takeover{Done: true}
	}
	shown := Takeover{Done: x.done, HasOwn: x.hasOwn, Unjudged: x.unjudged, Stranded: x.stranded}
	if shown.Since = x.lackingSince; x.done && x.lacks() {
		shown.Since = t.oldest(name)
	}
	return shown
}
