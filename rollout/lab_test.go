package rollout_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/rollout"
	"hdsd/rollout/canary"
	"hdsd/source"
)

const report = time.Second

// lab is a Rollout whose owner is the test: checkers that all check everything.
type lab struct {
	testing.TB
	*rollout.Rollout
	now      time.Time
	rules    *catalog.Rules
	clusters map[string]*catalog.Cluster
	ids      map[health.Hash]health.EndpointID
	places   map[health.EndpointID]place
	checkers map[string]*checker
	events   []rollout.Event
	records  map[string]*canary.Record
}

type place struct {
	cluster string
	hash    health.Hash
}

// checker is a connected checker.
type checker struct {
	spec     *specifier.Specifier
	accepted bool
	sent     int                          // specifiers
	probes   map[health.EndpointID]string // by the latest specifier
	votes    map[health.EndpointID]bool   // that are expected
	rejects  bool                         // what it is sent
}

func newLab(t testing.TB) *lab {
	l := &lab{
		TB: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), rules: catalog.NewRules(&configv1.Config{}),
		clusters: map[string]*catalog.Cluster{}, ids: map[health.Hash]health.EndpointID{}, places: map[health.EndpointID]place{},
		checkers: map[string]*checker{}, records: map[string]*canary.Record{},
	}
	l.Rollout = rollout.New(rollout.Options{Report: report, Grace: 2 * report}, l)
	return l
}

// Endpoint implements rollout.Lookup.
func (l *lab) Endpoint(id health.EndpointID) (*catalog.Cluster, int) {
	at := l.places[id]
	k := l.clusters[at.cluster]
	if k == nil {
		return nil, catalog.None
	}
	return k, slices.Index(k.Hashes, at.hash)
}

// ID implements rollout.Lookup.
func (l *lab) ID(hash health.Hash) health.EndpointID { return l.ids[hash] }

// Connected implements rollout.Lookup.
func (l *lab) Connected(id string) bool { return l.checkers[id] != nil }

// OnProbation implements rollout.Lookup.
func (l *lab) OnProbation(string) bool { return false }

// set gives a source's cluster to the Rollout, and everybody a specifier of it.
func (l *lab) set(from *source.Cluster) {
	k := catalog.Prepare(from, l.rules)
	before := l.clusters[from.Name]
	l.clusters[from.Name] = k
	for _, hash := range k.Hashes {
		id, ok := l.ids[hash]
		if !ok {
			id = health.EndpointID(len(l.ids))
			l.ids[hash], l.places[id] = id, place{from.Name, hash}
		}
		if before == nil || !slices.Contains(before.Hashes, hash) {
			for _, c := range l.checkers {
				c.votes[id] = true
			}
		}
	}
	if before != nil {
		for _, hash := range before.Hashes {
			if !slices.Contains(k.Hashes, hash) {
				for _, c := range l.checkers {
					delete(c.votes, l.ids[hash])
				}
			}
		}
	}
	l.SetCluster(l.now, k, catalog.ChangedProbes(before, k))
	l.specifyAll()
}

func (l *lab) specifyAll() {
	for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
		l.specify(id)
	}
}

// connect connects checkers, of the build that their first letter stands for.
func (l *lab) connect(ids ...string) {
	for _, id := range ids {
		c := &checker{votes: map[health.EndpointID]bool{}, probes: map[health.EndpointID]string{}}
		l.checkers[id] = c
		l.Connect(l.now, &health.Checker{ID: id, Version: id[:1], Abilities: health.Abilities{health.HTTP: {}, health.TCP: {}}})
		for endpoint := range l.work() {
			c.votes[endpoint] = true
		}
		l.specify(id)
	}
}

// lose disconnects a checker.
func (l *lab) lose(id string) {
	delete(l.checkers, id)
	l.Disconnect(l.now, id)
	l.tick()
}

// work is all that there is to check, cluster by cluster.
func (l *lab) work() func(yield func(health.EndpointID) bool) {
	return func(yield func(health.EndpointID) bool) {
		for _, name := range slices.Sorted(maps.Keys(l.clusters)) {
			for _, hash := range l.clusters[name].Hashes {
				if !yield(l.ids[hash]) {
					return
				}
			}
		}
	}
}

// specify sends a checker a specifier, and holds that its votes begin anew exactly
// where what it is sent differs.
func (l *lab) specify(id string) {
	l.Helper()
	c := l.checkers[id]
	if c == nil {
		l.Fatalf("a specifier for %s, which is not connected", id)
	}
	spec, votes := l.Specifier(l.now, id, rollout.Work{Endpoints: l.work()})
	if again := sameSpecifier(c.spec, spec); again && !spec.Retell {
		if len(votes) > 0 {
			l.Errorf("%s is sent nothing new, and its votes change: %+v", id, votes)
		}
		return
	}
	began := map[health.EndpointID]bool{}
	for _, v := range votes {
		if v.Unassign {
			delete(c.votes, v.Endpoint)
		}
		if v.Assign {
			c.votes[v.Endpoint], began[v.Endpoint] = true, true
		}
	}
	before := c.probes
	c.spec, c.accepted, c.probes = spec, false, probesOf(spec)
	c.sent++
	for endpoint, probe := range c.probes {
		was, had := before[endpoint]
		if differs := had && was != probe; began[endpoint] != differs && (differs || had) {
			l.Errorf("%s: votes on %d begin anew: %t; before it was sent\n%s\nnow\n%s", id, endpoint, began[endpoint], was, probe)
		}
	}
}

func sameSpecifier(a, b *specifier.Specifier) bool {
	return a != nil && a.Message().String() == b.Message().String() && slices.Equal(a.Order, b.Order)
}

// probesOf gives all that a specifier says of each endpoint.
func probesOf(s *specifier.Specifier) map[health.EndpointID]string {
	all, n := map[health.EndpointID]string{}, 0
	for _, form := range s.Message().GetClusterHealthChecks() {
		bare := healthv3.ClusterHealthCheck{ClusterName: form.GetClusterName(), HealthChecks: form.GetHealthChecks()}
		for _, group := range form.GetLocalityEndpoints() {
			for _, e := range group.GetEndpoints() {
				all[s.Order[n]] = bare.String() + "\n" + e.String()
				n++
			}
		}
	}
	return all
}

// pass lets time go by: checkers accept what they were sent and report it healthy.
func (l *lab) pass(d time.Duration) {
	l.Helper()
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(report / 2)
		for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
			c := l.checkers[id]
			if c.spec == nil || c.rejects {
				continue
			}
			if !c.accepted {
				c.accepted = true
				l.Accepted(l.now, id, c.spec)
			}
			var votes []health.Vote
			for _, endpoint := range c.spec.Order {
				votes = append(votes, health.Vote{Endpoint: endpoint, Status: health.Healthy})
			}
			l.Report(l.now, id, votes)
		}
		l.tick()
	}
}

func (l *lab) tick() {
	l.Helper()
	out := l.Tick(l.now, func(id string, _ bool) { l.specify(id) })
	l.events = append(l.events, out.Events...)
	for name, record := range out.Records {
		if delete(l.records, name); record != nil {
			l.records[name] = record
		}
	}
}

// having are the checkers that were sent a text.
func (l *lab) having(text string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
		if c := l.checkers[id]; c.spec != nil && strings.Contains(c.spec.Message().String(), text) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (l *lab) wantHaving(text string, ids ...string) {
	l.Helper()
	if got := l.having(text); !slices.Equal(got, ids) {
		l.Errorf("%s was sent to %v, want %v", text, got, ids)
	}
}

// kinds counts events.
func (l *lab) kinds() map[canary.Kind]int {
	count := map[canary.Kind]int{}
	for _, e := range l.events {
		count[e.Kind]++
	}
	return count
}

// web is a cluster that is checked by HTTP at a path, with endpoints by their ports;
// those above 9000 have a host name for their checks.
func web(name, path string, ports ...uint32) *source.Cluster {
	check := &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
		UnhealthyThreshold: wrapperspb.UInt32(2), HealthyThreshold: wrapperspb.UInt32(1),
		HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: path}},
	}
	group := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{Region: "eu", Zone: "a"}}
	for _, port := range ports {
		e := &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}}}
		if port > 9000 {
			e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{Hostname: fmt.Sprintf("host-%d.example", port)}
		}
		group.LbEndpoints = append(group.LbEndpoints, &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}})
	}
	slices.SortFunc(group.LbEndpoints, func(a, b *endpointv3.LbEndpoint) int {
		port := func(e *endpointv3.LbEndpoint) uint32 {
			return e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue()
		}
		return cmp.Compare(port(a), port(b))
	})
	return &source.Cluster{
		Source: "local", Name: name, ServiceName: name, HealthChecks: []*corev3.HealthCheck{check},
		Assignment: source.EncodeAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{group}}),
	}
}
