package targets_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/catalog"
	"hdsd/catalog/targets"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source/sample"
)

// prepared returns a cluster that three checkers check every interval.
func prepared(name string, interval time.Duration, addresses ...string) *catalog.Cluster {
	c := sample.Web(name, addresses...)
	c.HealthChecks[0].Interval = durationpb.New(interval)
	return catalog.Prepare(c, catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 3}}))
}

func none(func(*catalog.Cluster) bool) {}

// waiting lists the endpoints of clusters that wait.
func waiting(t *targets.Table, clusters ...*catalog.Cluster) (all []string) {
	for _, k := range clusters {
		for i := range k.Endpoints {
			if e := &k.Endpoints[i]; t.Waits(e.Hash()) {
				all = append(all, k.Source.Name+" "+e.Address())
			}
		}
	}
	return all
}

// TestTheFirstAreServed: ports and clusters share the limit of their address. Endpoints that count
// go on, and endpoints that wait follow in their order when there is room.
func TestTheFirstAreServed(t *testing.T) {
	table := targets.New()
	table.SetLimit(9, none)
	a := prepared("a", time.Second, "10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1")
	b := prepared("b", time.Second, "[::ffff:10.0.0.1]:1", "10.0.0.1:2")
	c := prepared("c", time.Second, "10.0.0.1:1", "10.0.0.3:1")
	want := func(what string, want ...string) {
		t.Helper()
		if got := waiting(table, a, b, c); !slices.Equal(got, want) {
			t.Errorf("%s: %v wait, want %v", what, got, want)
		}
	}
	for _, k := range []*catalog.Cluster{a, b, c} {
		table.Replace(nil, k)
	}
	if admitted := table.Admit(); len(admitted) != 0 {
		t.Errorf("%d are admitted at once", len(admitted))
	}
	want("nine probes a second", "b [::ffff:10.0.0.1]:1", "c 10.0.0.1:1")
	addresses, endpoints := table.Waiting()
	queue := targets.Queue{Address: netip.MustParseAddr("10.0.0.1"), Endpoints: 2, Cluster: "c"}
	if addresses != 1 || endpoints != 2 || table.Oldest() != queue || table.Newest() != queue {
		t.Errorf("%d at %d addresses, %+v", endpoints, addresses, table.Oldest())
	}

	quicker := prepared("a", time.Second/2, "10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:1")
	table.Replace(a, quicker)
	table.Admit()
	want("a asks for more, so that it is last", "a 10.0.0.1:1", "a 10.0.0.1:2")
	if table.Waits(c.Hashes[0]) {
		t.Error("c still waits")
	}
	slower := prepared("b", 3*time.Second, "[::ffff:10.0.0.1]:1", "10.0.0.1:2")
	table.Replace(b, slower)
	table.Admit()
	want("b asks for less and stays, there is no room for six", "a 10.0.0.1:1", "a 10.0.0.1:2")
	table.Replace(c, nil)
	if admitted := table.Admit(); !slices.Equal(admitted, quicker.Hashes[:1]) {
		t.Errorf("c is gone, and %d are admitted", len(admitted))
	}
	table.Replace(quicker, nil)
	table.Replace(slower, nil)
	table.Admit()
	if addresses, endpoints := table.Waiting(); addresses+endpoints != 0 {
		t.Error("all are gone, and some wait")
	}
}

// TestProbesCountWhereTheyGo: an endpoint whose check goes to another address counts there.
func TestProbesCountWhereTheyGo(t *testing.T) {
	table := targets.New()
	table.SetLimit(3, none)
	from := sample.Web("web", "10.0.0.1:1", "10.0.0.2:1")
	sample.Change(from, func(a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints[1].GetEndpoint().HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{
			Address: sample.Endpoint("10.0.0.1:9").GetEndpoint().GetAddress(),
		}
	})
	k := catalog.Prepare(from, catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 3}}))
	table.Replace(nil, k)
	if got := waiting(table, k); !slices.Equal(got, []string{"web 10.0.0.2:1"}) {
		t.Errorf("%v wait", got)
	}
	plain := prepared("web", time.Second, "10.0.0.1:1", "10.0.0.2:1")
	table.Replace(k, plain)
	if got := waiting(table, plain); len(got) != 0 {
		t.Errorf("the check goes to the endpoint again, and %v wait", got)
	}
}

// TestTheShortestIntervalCounts: each check counts by the shortest of its intervals.
func TestTheShortestIntervalCounts(t *testing.T) {
	from := sample.Web("web", "10.0.0.1:1")
	from.HealthChecks[0].UnhealthyInterval = durationpb.New(time.Second / 10)
	from.HealthChecks = append(from.HealthChecks, &corev3.HealthCheck{
		Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second / 2), UnhealthyThreshold: from.HealthChecks[0].UnhealthyThreshold,
		HealthyThreshold: from.HealthChecks[0].HealthyThreshold, HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
	})
	k := catalog.Prepare(from, catalog.NewRules(&configv1.Config{Assignment: &configv1.Assignment{Redundancy: 2}}))
	for limit, want := range map[uint32]int{23: 1, 24: 0} {
		table := targets.New()
		table.SetLimit(limit, none)
		table.Replace(nil, k)
		if got := waiting(table, k); len(got) != want {
			t.Errorf("of %d probes a second, %v wait", limit, got)
		}
	}
}

// TestNobodyWaitsBehindTheOversized: an endpoint that asks for more than the limit by itself blocks no
// other.
func TestNobodyWaitsBehindTheOversized(t *testing.T) {
	table := targets.New()
	table.SetLimit(5, none)
	all := []*catalog.Cluster{
		prepared("a", time.Second/2, "10.0.0.1:1"), prepared("b", time.Second, "10.0.0.1:1"), prepared("c", 2*time.Second, "10.0.0.1:1"), prepared("d", 2*time.Second, "10.0.0.1:1"),
	}
	for _, k := range all {
		table.Replace(nil, k)
	}
	table.Admit()
	if got, want := waiting(table, all...), []string{"a 10.0.0.1:1", "d 10.0.0.1:1"}; !slices.Equal(got, want) {
		t.Errorf("%v wait", got)
	}
	changed := table.SetLimit(9, slices.Values(all))
	if got, want := waiting(table, all...), []string{"c 10.0.0.1:1", "d 10.0.0.1:1"}; !slices.Equal(got, want) || len(changed) != 2 {
		t.Errorf("with a higher limit %v wait, %d changed", got, len(changed))
	}
	if changed := table.SetLimit(0, slices.Values(all)); len(waiting(table, all...)) != 0 || len(changed) != 2 {
		t.Errorf("without a limit %v wait, %d changed", waiting(table, all...), len(changed))
	}
}

// TestNoAddressGetsMoreThanItsLimit: whatever changes, the table keeps the limit, and returns each
// endpoint that begins or ceases to wait.
func TestNoAddressGetsMoreThanItsLimit(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		table, limit := targets.New(), uint32(10)
		table.SetLimit(limit, none)
		present := map[string]*catalog.Cluster{}
		for range 60 {
			wait := map[health.Hash]bool{}
			for _, k := range present {
				for _, hash := range k.Hashes {
					wait[hash] = table.Waits(hash)
				}
			}
			var moved []health.Hash
			changed := map[string]bool{}
			if r.IntN(10) == 0 {
				limit = 5 + r.Uint32N(20)
				moved = table.SetLimit(limit, maps.Values(present))
			}
			for range 1 + r.IntN(3) {
				name := fmt.Sprint("web-", r.IntN(6))
				var addresses []string
				for range r.IntN(5) {
					addresses = append(addresses, fmt.Sprintf("10.0.0.%d:%d", r.IntN(3), 1+r.IntN(3)))
				}
				var after *catalog.Cluster
				if len(addresses) > 0 {
					after = prepared(name, time.Second*time.Duration(1+r.IntN(4))/2, addresses...)
				}
				table.Replace(present[name], after)
				if changed[name] = true; after == nil {
					delete(present, name)
				} else {
					present[name] = after
				}
			}
			moved = append(moved, table.Admit()...)
			rates, waiters, count := map[netip.Addr]float64{}, map[netip.Addr][]float64{}, 0
			for name, k := range present {
				rate := 3 * float64(k.Rate) / 1000
				for i, hash := range k.Hashes {
					if table.Waits(hash) {
						if count++; rate <= float64(limit) {
							waiters[k.Checked.Target(i)] = append(waiters[k.Checked.Target(i)], rate)
						}
					} else {
						rates[k.Checked.Target(i)] += rate
					}
					if !changed[name] && wait[hash] != table.Waits(hash) && !slices.Contains(moved, hash) {
						t.Fatalf("seed %d: an endpoint of %s waits: %t, and no call has returned it", seed, name, table.Waits(hash))
					}
				}
			}
			for address, rate := range rates {
				if rate > float64(limit)+0.01 {
					t.Fatalf("seed %d: %s gets %v probes a second, the limit is %d", seed, address, rate, limit)
				}
			}
			for address, each := range waiters {
				if rates[address]+slices.Max(each) <= float64(limit)-0.01 {
					t.Fatalf("seed %d: %s gets %v probes a second of %d, and each of %v would have room", seed, address, rates[address], limit, each)
				}
			}
			if _, endpoints := table.Waiting(); endpoints != count {
				t.Fatalf("seed %d: %d wait, the table counts %d", seed, count, endpoints)
			}
		}
	}
}
