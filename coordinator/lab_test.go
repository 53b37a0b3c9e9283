package coordinator

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"hdsd/catalog"
	"hdsd/coordinator/feed"
	"hdsd/envoy"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/source"
	"hdsd/source/sample"
	"hdsd/store"
)

const (
	report = time.Second
	grace  = 5 * time.Second
	settle = 3 * time.Second
)

// lab is a core with fake stages around it and a clock of its own, driven by the test.
type lab struct {
	t       testing.TB
	now     time.Time
	core    *core
	intake  *labFeed
	deliver func(catalog.Delivery)   // applies a delivery; a test may replace it
	pending func(source string) bool // reports whether a source has not answered for another; may be nil
	sets    []*source.Set
	rules   *configv1.Config
	timing  machine.Timing
	onStart func(*core, *log.State) // called with each new core before it is restored; may be nil

	truth    map[string]health.Status // results of probes by address
	unprobed string                   // an address that checkers find down for a while after each specifier
	checkers map[string]*fakeChecker
	sent     map[string]int // changed specifiers by checker

	health      map[health.EndpointID]health.Status
	zoneHealth  map[health.Locality]map[health.EndpointID]health.Status // by zone
	assignments map[string]publish.Assignment
	clusters    map[string]*clusterv3.Cluster

	transitions []health.Transition
	plan        map[string][]health.Hash
	remembered  []string
	frozen      *log.Freeze
	overrides   map[health.Endpoint]log.Override
	trust       map[string]log.Trust
	voted       map[health.Hash]health.Verdict
	trials      map[string]*log.Trials
	established map[string]log.Established
	givenBack   map[string]bool
	takenOver   map[string]bool
	penalties   map[health.Hash]log.Penalty
	saves       int // entries with penalties
	events      []store.Event
	forget      func(health.Hash) bool
	order       []string              // of effects
	afterEach   func()                // called after each step of runRandom; may be nil
	vary        func(*source.Cluster) // changes each drawn cluster; nil: none

	answeredSources map[string]bool // sources that have answered
	incomplete      bool            // some source has not answered
}

// fakeChecker is a connected checker with its stream. It reports changed votes, and all votes after a specifier.
type fakeChecker struct {
	health.Checker
	spec       *specifier.Specifier
	fresh      bool // the checker has not reported on spec
	reported   map[health.EndpointID]health.Status
	blind      map[string]health.Status // results instead of truth, by address
	blindUntil time.Time                // end of blind; zero: never
	rejects    bool                     // rejects specifiers
}

func newLab(t testing.TB) *lab {
	l := &lab{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), timing: machine.Timing{Report: report, Grace: grace, Settle: settle},
		rules:  &configv1.Config{Assignment: &configv1.Assignment{Redundancy: 3}, Verdict: &configv1.Verdict{}, Checkers: &configv1.Checkers{}},
		truth:  map[string]health.Status{},
		health: map[health.EndpointID]health.Status{}, assignments: map[string]publish.Assignment{}, clusters: map[string]*clusterv3.Cluster{},
		plan: map[string][]health.Hash{}, trials: map[string]*log.Trials{}, established: map[string]log.Established{},
		penalties: map[health.Hash]log.Penalty{}, givenBack: map[string]bool{}, takenOver: map[string]bool{},
		overrides: map[health.Endpoint]log.Override{}, voted: map[health.Hash]health.Verdict{}, trust: map[string]log.Trust{},
	}
	l.start(map[health.Hash]log.Health{})
	return l
}

// start makes a new core from the stored state.
func (l *lab) start(last map[health.Hash]log.Health) {
	l.checkers, l.sent = map[string]*fakeChecker{}, map[string]int{}
	l.health, l.assignments, l.clusters = map[health.EndpointID]health.Status{}, map[string]publish.Assignment{}, map[string]*clusterv3.Cluster{}
	c := newCore(l.timing, zerolog.Nop(), newMetrics(prometheus.NewRegistry()), l, l)
	c.hds, c.publisher.complete = l, func() {}
	attendance := log.Attendance{}
	for i := range l.events {
		store.Attend(attendance, &l.events[i])
	}
	state := log.State{
		Current: last, Voted: maps.Clone(l.voted), Plan: maps.Clone(l.plan), Freeze: l.frozen,
		Overrides: slices.Collect(maps.Values(l.overrides)), Trust: maps.Clone(l.trust), Trials: l.trials, Established: maps.Clone(l.established),
		Penalties: maps.Clone(l.penalties), GivenBack: maps.Clone(l.givenBack), TakenOver: maps.Clone(l.takenOver), Attendance: attendance,
	}
	if l.onStart != nil {
		l.onStart(c, &state)
	}
	c.restore(state)
	l.core, l.zoneHealth = c, map[health.Locality]map[health.EndpointID]health.Status{}
	l.deliver = func(d catalog.Delivery) {
		l.step(machine.Delivered{Delivery: d})
		l.answeredSources, l.incomplete = d.Answered, !d.Complete
	}
	l.intake = &labFeed{Intake: feed.NewIntake(func(d catalog.Delivery) { l.deliver(d) }, l, zerolog.Nop())}
	l.intake.Now = func() time.Time { return l.now }
}

// step lets the core handle an event now.
func (l *lab) step(e machine.Event) { l.core.step(l.now, e) }

// serve sets the clusters of the source, and begins the time to settle.
func (l *lab) serve(clusters ...*source.Cluster) {
	l.sets = []*source.Set{localSet(clusters)}
	l.intake.restart(l.sets, catalog.NewRules(l.rules))
	l.step(machine.Begun{})
}

// setClusters sets the clusters of the source.
func (l *lab) setClusters(clusters ...*source.Cluster) {
	l.intake.take(localSet(clusters))
	l.step(machine.Tick{})
}

// Want implements feed.Asker.
func (l *lab) Want(string, []string) {}

// Pending implements feed.Asker.
func (l *lab) Pending(source string) bool { return l.pending != nil && l.pending(source) }

// labFeed is an Intake with sources of fixed sets.
type labFeed struct {
	*feed.Intake
	readers map[string]feed.Reader
}

// fixed is a source with one set and no changes.
type fixed struct{ *source.Set }

// Latest implements feed.Reader.
func (f fixed) Latest() *source.Set { return f.Set }

// Run implements feed.Reader.
func (f fixed) Run(context.Context, func(*source.Set)) error { return nil }

// restart replaces the sources by new ones with these sets.
func (in *labFeed) restart(sets []*source.Set, r *catalog.Rules) {
	in.readers = map[string]feed.Reader{}
	var all []feed.Reader
	for _, set := range sets {
		in.readers[set.Source] = &fixed{set}
		all = append(all, in.readers[set.Source])
	}
	in.Restart(all, r, nil)
}

// take takes a set from the source of its name.
func (in *labFeed) take(set *source.Set) { in.Take(in.readers[set.Source], set) }

// localSet returns a set of clusters, sorted by name.
func localSet(clusters []*source.Cluster) *source.Set {
	return &source.Set{Source: "local", Clusters: slices.SortedFunc(slices.Values(clusters), byName)}
}

func byName(a, b *source.Cluster) int { return cmp.Compare(a.Name, b.Name) }

// restart restarts hdsd. The test calls serve for the clusters.
func (l *lab) restart() {
	last := map[health.Hash]log.Health{}
	for _, t := range l.transitions {
		last[t.Endpoint.Hash()] = log.Health{Endpoint: t.Endpoint, Status: t.To, Since: t.Time, Reason: t.Reason}
	}
	l.start(last)
}

// pass lets time pass, with reports of checkers and ticks.
func (l *lab) pass(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(report / 2)
		for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
			l.report(id)
		}
		l.step(machine.Tick{})
	}
	l.wantTally()
	l.wantPanics()
}

// join connects checkers. The last letter of an id is the zone.
func (l *lab) join(ids ...string) {
	for _, id := range ids {
		l.connect(health.Checker{
			ID: id, Version: "envoy/1.40.0", Locality: health.Locality{Region: "eu", Zone: id[len(id)-1:]},
			Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}, health.FreshCodes: {}},
		})
	}
}

func (l *lab) connect(c health.Checker) {
	l.checkers[c.ID] = &fakeChecker{Checker: c, reported: map[health.EndpointID]health.Status{}}
	l.step(machine.Connected{Checker: c})
}

func (l *lab) lose(id string) {
	delete(l.checkers, id)
	l.step(machine.Disconnected{Checker: id})
	l.step(machine.Tick{})
}

func (l *lab) report(id string) {
	k := l.checkers[id]
	if k.spec == nil || k.rejects {
		return
	}
	if !k.blindUntil.IsZero() && !l.now.Before(k.blindUntil) {
		k.blind, k.blindUntil = nil, time.Time{}
	}
	var votes []health.Vote
	for i, endpoint := range k.spec.Order {
		status := health.Healthy
		if found, ok := l.truth[k.spec.Addresses[i]]; ok {
			status = found
		}
		if seen, ok := k.blind[k.spec.Addresses[i]]; ok {
			status = seen
		}
		if before, ok := k.reported[endpoint]; k.fresh || !ok || before != status {
			vote := health.Vote{Endpoint: endpoint, Status: status}
			if status == health.Unhealthy && k.blindUntil.IsZero() { // what is not probed yet has no code
				vote.HTTPStatusCode = http.StatusInternalServerError
			}
			votes = append(votes, vote)
		}
		k.reported[endpoint] = status
	}
	if k.fresh {
		l.step(machine.Followed{Checker: id, Specifier: k.spec})
	}
	k.fresh = false
	l.step(machine.Reported{Checker: id, Votes: votes})
}

// Assign implements checkerServer.
func (l *lab) Assign(id string, s *specifier.Specifier) {
	k := l.checkers[id]
	if k == nil {
		l.t.Errorf("a specifier for %s, which is not connected", id)
		return
	}
	if k.spec != nil && !s.Retell && proto.Equal(k.spec.Message(), s.Message()) && slices.Equal(k.spec.Order, s.Order) {
		return
	}
	k.spec, k.fresh = s, true
	if l.unprobed != "" {
		k.blind, k.blindUntil = map[string]health.Status{l.unprobed: health.Unhealthy}, l.now.Add(2*report)
	}
	l.sent[id]++
}

// Update implements resourceServer.
func (l *lab) Update(u publish.Update) {
	for _, a := range u.Assignments {
		l.assignments[a.Name] = a
	}
	for _, name := range u.RemovedAssignments {
		delete(l.assignments, name)
	}
	for _, c := range u.Clusters {
		l.clusters[c.Message.GetName()] = c.Message
	}
	for _, name := range u.RemovedClusters {
		delete(l.clusters, name)
	}
}

// SetHealth implements resourceServer.
func (l *lab) SetHealth(all []publish.Health) {
	for _, h := range all {
		l.health[h.ID] = h.Status
	}
	l.order = append(l.order, "published")
}

// SetZoneHealth implements resourceServer.
func (l *lab) SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	if l.zoneHealth[zone] == nil {
		l.zoneHealth[zone] = map[health.EndpointID]health.Status{}
	}
	for _, h := range set {
		l.zoneHealth[zone][h.ID] = h.Status
	}
	for _, id := range unset {
		delete(l.zoneHealth[zone], id)
	}
}

// AppendEvents implements historyStore.
func (l *lab) AppendEvents(all []store.Event) { l.events = append(l.events, all...) }

// KnownCluster implements historyStore.
func (l *lab) KnownCluster(string) bool { return false }

// Apply implements historyStore.
func (l *lab) Apply(e *log.Entry) {
	if e.Freeze != nil {
		l.frozen = e.Freeze.After
	}
	if e.Held != nil {
		l.frozen = e.Held
	}
	for _, c := range e.Overrides {
		if delete(l.overrides, c.Override.Scope); c.Kind == log.Set {
			l.overrides[c.Override.Scope] = c.Override
		}
	}
	if e.Trust != nil {
		merge(l.trust, map[string]*log.Trust{e.Trust.Checker: e.Trust.After})
	}
	l.remembered = append(l.remembered, e.Clusters...)
	merge(l.voted, e.Voted)
	if len(e.Transitions) > 0 {
		l.transitions = append(l.transitions, e.Transitions...)
		l.order = append(l.order, "appended")
	}
	for _, hash := range e.Unvoted {
		delete(l.voted, hash)
	}
	for _, name := range slices.Concat(e.TakenOver, e.Removed) {
		delete(l.givenBack, name)
	}
	for _, name := range e.TakenOver {
		l.takenOver[name] = true
	}
	for _, name := range slices.Concat(e.Removed, e.GivenBack) {
		delete(l.takenOver, name)
	}
	for _, name := range e.GivenBack {
		l.givenBack[name] = true
	}
	for id, hashes := range e.Plan {
		if delete(l.plan, id); hashes != nil {
			l.plan[id] = hashes
		}
	}
	merge(l.established, e.Established)
	for name, t := range e.Trials {
		if delete(l.trials, name); t != nil {
			l.trials[name] = t
		}
	}
	if merge(l.penalties, e.Penalties); len(e.Penalties) > 0 {
		l.saves++
	}
}

// merge applies changed rows, of which a nil one is removed.
func merge[K comparable, V any](rows map[K]V, changed map[K]*V) {
	for key, row := range changed {
		if delete(rows, key); row != nil {
			rows[key] = *row
		}
	}
}

// Forget implements historyStore.
func (l *lab) Forget(known func(health.Hash) bool) { l.forget = known }

// message returns the published assignment of a service, without health.
func (l *lab) message(service string) *endpointv3.ClusterLoadAssignment {
	a := l.assignments[service]
	return a.Message()
}

// published returns the published health of an address of a service.
func (l *lab) published(service, address string) health.Status {
	l.t.Helper()
	a, ok := l.assignments[service]
	if !ok {
		l.t.Fatalf("no assignment %q is published", service)
	}
	for i, group := range a.Message().GetEndpoints() {
		for j, e := range group.GetLbEndpoints() {
			if envoy.AddressOf(e, i, j) != address {
				continue
			}
			if len(a.IDs[i][j]) == 0 {
				return health.Status(e.GetHealthStatus())
			}
			worst := l.health[a.IDs[i][j][0]]
			for _, id := range a.IDs[i][j] {
				worst = health.Worse(worst, l.health[id])
			}
			if a.Overruled {
				return worst
			}
			return publish.Combine(worst, publish.SourceStatus(e))
		}
	}
	l.t.Fatalf("%s has no %s", service, address)
	return 0
}

func (l *lab) wantPublished(service, address string, want health.Status) {
	l.t.Helper()
	if got := l.published(service, address); got != want {
		l.t.Errorf("%s %s is published as %v, want %v", service, address, got, want)
	}
}

// checkersOf returns the checkers with an address in their specifiers.
func (l *lab) checkersOf(address string) []string {
	var who []string
	for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
		if k := l.checkers[id]; k.spec != nil && slices.Contains(k.spec.Addresses, address) {
			who = append(who, id)
		}
	}
	return who
}

func (l *lab) wantTransitions(count int) {
	l.t.Helper()
	if len(l.transitions) != count {
		l.t.Errorf("%d transitions, want %d: %+v", len(l.transitions), count, l.transitions)
	}
}

type (
	sourceCluster = source.Cluster
	sourceSet     = source.Set
)

// keyOf returns the key of an address in a cluster of web.
func keyOf(cluster, address string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address}
}

// policiesOf returns one policy.
func policiesOf(glob string, redundancy uint32, zone string) []*configv1.Policy {
	p := &configv1.Policy{ClusterNameGlob: glob, Redundancy: redundancy}
	if zone != "" {
		p.Checkers = &configv1.CheckerSelector{Localities: []*configv1.LocalitySelector{{Zone: zone}}}
	}
	return []*configv1.Policy{p}
}

// web returns a cluster of the addresses with an HTTP check.
func web(name string, addresses ...string) *source.Cluster { return sample.Web(name, addresses...) }

func withPath(name, path string, addresses ...string) *source.Cluster {
	return sample.WithPath(name, path, addresses...)
}

func lbEndpoint(address string) *endpointv3.LbEndpoint { return sample.Endpoint(address) }
