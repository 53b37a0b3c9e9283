package check

import (
	"context"
	"math/rand/v2"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// pool is all hosts with their checks. One goroutine calls its methods.
type pool struct {
	ctx      context.Context
	work     sync.WaitGroup
	net      network
	reports  Reports
	clusters []cluster
}

type cluster struct {
	name       string
	sockets    string
	hosts      map[string]*host // by key
	localities []locality
}

type locality struct {
	locality *corev3.Locality
	hosts    []*host // a host that is listed twice is here twice
}

func newPool(ctx context.Context, dialer Dialer, maxDials int) *pool {
	return &pool{ctx: ctx, net: network{
		dialer: dialer,
		places: make(chan struct{}, maxDials),
		random: rand.Int64N,
	}}
}

// apply makes the pool check what s says. Existing hosts keep their state. Removed ones
// stop before anything new starts.
func (p *pool) apply(s *specifier) {
	before := map[string]*cluster{}
	for i := range p.clusters {
		if c := &p.clusters[i]; c.name != "" {
			before[c.name] = c
		}
	}
	removed := map[*host]struct{}{}
	for _, c := range p.clusters {
		for _, h := range c.hosts {
			removed[h] = struct{}{}
		}
	}
	clusters := make([]cluster, 0, len(s.clusters))
	for i := range s.clusters {
		clusters = append(clusters, buildCluster(&s.clusters[i], before[s.clusters[i].name], removed))
	}
	for h := range removed {
		h.stop()
	}
	p.clusters = clusters
	for i := range s.clusters {
		for _, h := range clusters[i].hosts {
			for _, prober := range h.use(s.clusters[i].checks, &p.net) {
				prober.begin(p.ctx, &p.work)
			}
		}
	}
}

// buildCluster returns the cluster of spec. It reuses the same hosts of before, and deletes them
// from removed.
func buildCluster(spec *clusterSpec, before *cluster, removed map[*host]struct{}) cluster {
	c := cluster{name: spec.name, sockets: spec.sockets, hosts: map[string]*host{}}
	for _, l := range spec.localities {
		hosts := make([]*host, 0, len(l.hosts))
		for _, s := range l.hosts {
			h := c.hosts[s.key]
			if h == nil && before != nil && before.sockets == spec.sockets {
				h = before.hosts[s.key]
				delete(removed, h)
			}
			if h == nil {
				h = newHost(s)
			}
			c.hosts[s.key] = h
			hosts = append(hosts, h)
		}
		c.localities = append(c.localities, locality{l.locality, hosts})
	}
	return c
}

// close stops everything and waits for it. The context must have ended, or end soon.
func (p *pool) close() {
	p.apply(&specifier{})
	p.work.Wait()
}
