package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hdsd/test/scale"
)

const (
	alone    = "a single coordinator"
	replicas = 3
)

// group is three replicas on an etcd of their own, or a coordinator alone, with checkers and data planes that are
// spread over the replicas.
type group struct {
	etcd   *engine // nil: a coordinator alone
	world  *scale.World
	seen   []int // endpoints of the clusters that the data planes have
	all    []*hdsd
	crew   *crew
	planes []*plane // by replica; those of a coordinator alone are all connected to it
}

// The data planes of a large fleet have some clusters only, since their work is done on the same cores.
const seenClusters = 60

// newGroup starts it, and waits until each endpoint has so many checkers and is healthy.
func newGroup(l *lab, binary string, several bool, w *scale.World, checkers, redundancy int, extra string) (*group, error) {
	g := &group{world: w}
	step := max(1, (w.ClusterOf(w.Size()-1)+1)/seenClusters)
	for e := range w.Size() {
		if w.ClusterOf(e)%step == 0 {
			g.seen = append(g.seen, e)
		}
	}
	if err := g.start(l, binary, several, checkers, redundancy, extra); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *group) start(l *lab, binary string, several bool, checkers, redundancy int, extra string) (err error) {
	count := 1
	if several {
		count = replicas
		if g.etcd, err = newEngine(l.dir); err != nil {
			return err
		}
	}
	var servers []string
	for i := range count {
		text := extra
		if several {
			text += fmt.Sprintf("replication: {etcd: {endpoints: [%q, %q, %q]}, peer: {address: \"127.0.0.1:0\"}}\n",
				"http://"+g.etcd.clients[i], "http://"+g.etcd.clients[(i+1)%replicas], "http://"+g.etcd.clients[(i+2)%replicas])
		}
		h, err := newNode(l.dir, binary, fmt.Sprintf("hdsd-%d", i), g.world, text)
		if err == nil {
			err = h.start()
		}
		if err != nil {
			return err
		}
		g.all, servers = append(g.all, h), append(servers, h.grpc)
	}
	g.crew = spreadCrew(servers, g.world, checkers, time.Second)
	if err := g.settle(redundancy); err != nil {
		return err
	}
	for i := range replicas {
		p, err := g.plane(servers[i%count])
		if err != nil {
			return err
		}
		g.planes = append(g.planes, p)
	}
	return nil
}

// plane connects a data plane.
func (g *group) plane(server string) (*plane, error) {
	var clusters []string
	for _, e := range g.seen {
		clusters = append(clusters, g.world.Name(g.world.ClusterOf(e)))
	}
	return subscribe(server, g.world, slices.Compact(clusters)...)
}

// settle waits until each endpoint is checked so often, and is healthy on each replica.
func (g *group) settle(redundancy int) error {
	for _, h := range g.all {
		if err := g.crew.settle(h, redundancy); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) close() {
	for _, h := range g.all {
		if h.process != nil {
			h.kill()
		}
	}
	if g.crew != nil {
		g.crew.leave()
	}
	for _, p := range g.planes {
		p.leave()
	}
	if g.etcd != nil {
		g.etcd.close()
	}
}

// leader is the number of the replica that leads; 0 for a coordinator alone.
func (g *group) leader() (leader int, err error) {
	if g.etcd == nil {
		return 0, nil
	}
	return leader, until("a leader", 10*time.Millisecond, func() (bool, error) {
		for i, h := range g.all {
			leads, err := h.metric("hdsd_replica_leads")
			if err != nil || leads == 1 {
				leader = i
				return err == nil, err
			}
		}
		return false, nil
	})
}

// expect is the method of a plane for all of them: it returns when the first and the last was told.
func (g *group) expect(endpoints []int, down bool) (wait func() (first, last time.Time, err error)) {
	var waits []func() (time.Time, error)
	for _, p := range g.planes {
		waits = append(waits, p.expect(endpoints, down))
	}
	return func() (first, last time.Time, err error) {
		var errs []error
		for i, wait := range waits {
			push, err := wait()
			if i == 0 || push.Before(first) {
				first = push
			}
			if push.After(last) {
				last = push
			}
			errs = append(errs, err)
		}
		return first, last, errors.Join(errs...)
	}
}
