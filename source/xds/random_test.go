package xds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// world is what a manager has: assignments are always there, since in the
// state of the world nobody is told when one goes.
type world struct {
	version  int
	clusters map[string]*clusterv3.Cluster
	hosts    map[string]string // by service name
}

// step changes something.
func (w *world) step(r *rand.Rand) {
	w.version++
	name := string(rune('a' + r.IntN(5)))
	service := fmt.Sprint("svc-", r.IntN(3))
	switch r.IntN(4) {
	case 0:
		delete(w.clusters, name)
	case 1:
		w.clusters[name] = inline(name, fmt.Sprint("own-", w.version))
	case 2:
		w.clusters[name] = eds(name, service)
	default:
		w.hosts[service] = fmt.Sprint(service, "-", w.version)
	}
}

func (w *world) publish(m *manager) {
	var clusters []*clusterv3.Cluster
	var assignments []*endpointv3.ClusterLoadAssignment
	for _, c := range w.clusters {
		clusters = append(clusters, c)
	}
	for service, host := range w.hosts {
		assignments = append(assignments, endpoints(service, host))
	}
	m.publish(fmt.Sprint(w.version), clusters, assignments...)
}

func (w *world) said() string {
	var all []string
	for name, c := range w.clusters {
		hosts := addresses(c.GetLoadAssignment())
		if service := c.GetEdsClusterConfig().GetServiceName(); service != "" {
			hosts = w.hosts[service]
		}
		all = append(all, name+"="+hosts)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestRandomHistories: whatever happens at go-control-plane's server and to the
// connection with it, in the end the source says what the server has.
func TestRandomHistories(t *testing.T) {
	for way, from := range ways {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(way, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 1))
					w := &world{clusters: make(map[string]*clusterv3.Cluster), hosts: map[string]string{"svc-0": "0", "svc-1": "1", "svc-2": "2"}}
					n := newNetwork(t)
					ctx, cancel := context.WithCancel(t.Context())
					m, stop := n.manage(ctx)
					r := n.run(from)
					for range 40 {
						w.step(random)
						w.publish(m)
						if random.IntN(3) > 0 {
							time.Sleep(time.Duration(random.IntN(int(3 * time.Second))))
						}
						if random.IntN(8) == 0 { // another server, which has the same
							cancel()
							stop()
							time.Sleep(time.Duration(random.IntN(int(time.Second))))
							ctx, cancel = context.WithCancel(t.Context())
							m, stop = n.manage(ctx)
							w.publish(m)
						}
					}
					time.Sleep(2 * time.Minute)
					w.version++
					w.hosts["svc-0"] = "last"
					w.clusters["a"] = eds("a", "svc-0")
					w.publish(m)
					time.Sleep(2 * time.Second)
					equal(t, "set", said(r.latest()), w.said())
					r.stop()
					cancel()
					stop()
					synctest.Wait()
				})
			})
		}
	}
}
