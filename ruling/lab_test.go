package ruling_test

import (
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/aggregate"
	"hdsd/catalog"
	"hdsd/envoy"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/publish"
	"hdsd/ruling"
	"hdsd/source"
)

const (
	up      = health.Healthy
	down    = health.Unhealthy
	drained = health.Draining
	unknown = health.Unknown
)

var addresses = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}

// lab is a table whose effects go to simple models of the aggregator, of a data plane
// and of the store.
type lab struct {
	t     testing.TB
	now   time.Time
	table *ruling.Table

	verdicts map[health.EndpointID]health.Verdict // of the votes
	stranded map[health.EndpointID]bool           // no checker is able to check them

	assignments map[string]publish.Assignment
	clusters    map[string]*clusterv3.Cluster
	updates     int // of clusters or assignments
	health      map[health.EndpointID]health.Status
	zones       map[health.Locality]map[health.EndpointID]health.Status

	transitions []health.Transition
	stored      log.State
}

func newLab(t testing.TB) *lab {
	l := &lab{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), stored: log.State{TakenOver: map[string]bool{}}}
	l.start()
	return l
}

// start begins with what is stored, as after a restart.
func (l *lab) start() {
	l.verdicts, l.health = map[health.EndpointID]health.Verdict{}, map[health.EndpointID]health.Status{}
	l.clusters, l.stranded = map[string]*clusterv3.Cluster{}, map[health.EndpointID]bool{}
	l.assignments, l.zones = map[string]publish.Assignment{}, map[health.Locality]map[health.EndpointID]health.Status{}
	l.table = ruling.New(func(id health.EndpointID) health.Verdict { return l.verdicts[id] })
	l.table.Restore(l.stored.Clone())
}

// serve starts with these clusters, and settles.
func (l *lab) serve(clusters ...*catalog.Cluster) {
	l.say(clusters...)
	l.do(l.table.Start(l.now))
	l.do(l.table.Settle(l.now))
}

// say gives the table these clusters in place of those before.
func (l *lab) say(clusters ...*catalog.Cluster) {
	change := ruling.Change{Changed: clusters, Answered: map[string]bool{"local": true}, Complete: true}
	for _, name := range l.table.Names() {
		if !slices.ContainsFunc(clusters, func(k *catalog.Cluster) bool { return k.Source.Name == name }) {
			change.Removed = append(change.Removed, name)
		}
	}
	effects := l.table.Apply(l.now, change)
	l.do(effects)
	l.do(l.table.Announce(l.now, effects.Unannounced))
}

// vote makes the votes on an endpoint come to a verdict.
func (l *lab) vote(key health.Endpoint, to health.Status) {
	l.t.Helper()
	id, ok := l.table.Find(key.Hash())
	if !ok {
		l.t.Fatalf("%v has no id", key)
	}
	from := l.verdicts[id].Status
	if from == to {
		return
	}
	l.verdicts[id] = health.Verdict{Status: to, Since: l.now, Reason: "3 of 3 checkers say " + to.String()}
	l.do(l.table.Decide(l.now, []aggregate.Change{{Endpoint: id, From: from, To: to, Reason: l.verdicts[id].Reason}}, nil))
}

// see makes a zone see an endpoint otherwise; unknown ends that.
func (l *lab) see(zone string, key health.Endpoint, status health.Status) {
	id, _ := l.table.Find(key.Hash())
	l.do(l.table.Decide(l.now, nil, []aggregate.ZoneView{{Endpoint: id, Zone: health.Locality{Zone: zone}, Status: status, Over: status == unknown}}))
}

// override sets an override of ann's.
func (l *lab) override(scope health.Endpoint, to health.Status, lasts time.Duration) error {
	asked := log.Override{Scope: scope, Status: to, Author: "ann", Reason: "kernel"}
	if lasts > 0 {
		asked.Until = l.now.Add(lasts)
	}
	_, _, effects, err := l.table.SetOverride(l.now, asked)
	l.do(effects)
	return err
}

// do carries effects out.
func (l *lab) do(e ruling.Effects) {
	for _, m := range e.Members {
		if m.Gone || m.WasChecked {
			delete(l.stranded, m.ID)
		}
		switch {
		case m.Gone:
			delete(l.verdicts, m.ID)
		case m.New:
			l.verdicts[m.ID] = health.Verdict{Status: m.Status, Since: m.Since}
		}
	}
	for i := range e.Decisions {
		d := &e.Decisions[i]
		l.publish(d)
		l.store(d)
	}
}

func (l *lab) publish(d *ruling.Decision) {
	set := func(all []publish.Health) {
		for _, h := range all {
			l.health[h.ID] = h.Status
		}
	}
	set(d.Health)
	if !d.Update.IsEmpty() {
		l.updates++
	}
	for _, k := range d.Update.Clusters {
		l.clusters[k.Message.GetName()] = k.Message
	}
	for _, a := range d.Update.Assignments {
		l.assignments[a.Name] = a
	}
	for _, name := range d.Update.RemovedAssignments {
		delete(l.assignments, name)
	}
	set(d.Withdrawn)
	for _, z := range d.Zones {
		if l.zones[z.Zone] == nil {
			l.zones[z.Zone] = map[health.EndpointID]health.Status{}
		}
		for _, h := range z.Set {
			l.zones[z.Zone][h.ID] = h.Status
		}
		for _, id := range z.Unset {
			delete(l.zones[z.Zone], id)
		}
	}
}

func (l *lab) store(d *ruling.Decision) {
	l.stored.Apply(&d.Entry)
	l.transitions = append(l.transitions, d.Transitions...)
}

// published is what data planes get of an endpoint.
func (l *lab) published(key health.Endpoint) health.Status {
	l.t.Helper()
	status, ok := l.publishedIn(key.Cluster, key)
	if !ok {
		l.t.Fatalf("%v is not published", key)
	}
	return status
}

// publishedIn gives the health of an endpoint that data planes have in an assignment, and whether it is in there.
func (l *lab) publishedIn(service string, key health.Endpoint) (status health.Status, ok bool) {
	a := l.assignments[service]
	for i, group := range a.Message().GetEndpoints() {
		if at := group.GetLocality(); (health.Locality{Region: at.GetRegion(), Zone: at.GetZone(), SubZone: at.GetSubZone()}) != key.Locality {
			continue
		}
		for j, e := range group.GetLbEndpoints() {
			if envoy.AddressOf(e, i, j) != key.Address {
				continue
			}
			ours := unknown
			for n, id := range a.IDs[i][j] {
				if ours = health.Worse(ours, l.health[id]); n == 0 {
					ours = l.health[id]
				}
			}
			if len(a.IDs[i][j]) > 0 && a.Overruled {
				return ours, true
			}
			return publish.Combine(ours, publish.SourceStatus(e)), true
		}
	}
	return unknown, false
}

func (l *lab) wantPublished(key health.Endpoint, want health.Status) {
	l.t.Helper()
	if got := l.published(key); got != want {
		l.t.Errorf("%v is published as %v, want %v", key, got, want)
	}
}

// wantLast is for the last transition.
func (l *lab) wantLast(from, to health.Status, reason string) {
	l.t.Helper()
	if len(l.transitions) == 0 {
		l.t.Fatal("nothing is recorded")
	}
	if last := l.transitions[len(l.transitions)-1]; last.From != from || last.To != to || last.Reason != reason {
		l.t.Errorf("recorded last is %+v, want %v to %v: %s", last, from, to, reason)
	}
}

// keyOf is the key of an address in a cluster of web.
func keyOf(cluster, address string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address + ":80"}
}

// web prepares a cluster of the addresses, checked by TCP.
func web(name string, addresses ...string) *catalog.Cluster {
	return prepared(&configv1.Config{}, name, addresses...)
}

func prepared(by *configv1.Config, name string, addresses ...string) *catalog.Cluster {
	return catalog.Prepare(sourceOf(name, addresses...), catalog.NewRules(by))
}

func sourceOf(name string, addresses ...string) *source.Cluster {
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
	}
	group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: "a"}}
	for _, address := range addresses {
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}})
	}
	assignment := source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{group}})
	config := &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		HealthChecks: []*corev3.HealthCheck{check},
	}
	return &source.Cluster{Source: "local", Name: name, ServiceName: name, Config: config, Assignment: assignment, HealthChecks: config.GetHealthChecks()}
}
