package main

import (
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"hdsd/test/scale"
)

// ofReplicas is what the names of all works of replicas begin with.
const ofReplicas = "replicas: "

const onlyEtcd = "etcd alone"

// severalReplicas is the work of several replicas, each beside a coordinator alone with as many data planes, and etcd.
func severalReplicas(full bool) []scenario {
	large := &sharedFleet{endpoints: 30_000, clusters: 300, checkers: 60, rest: 10 * time.Second}
	streams := &sharedStreams{clusters: 100, checkers: 240, subscribers: 900}
	if full {
		large = &sharedFleet{endpoints: 300_000, clusters: 3000, checkers: 300, rest: time.Minute, markCPU: 0.5}
		streams.checkers, streams.subscribers = 480, 2400
	}
	return []scenario{&sharedPushes{endpoints: 600, trips: trips}, &losses{endpoints: 600}, streams, large}
}

// sharedPushes is single flips. Each has one checker, on one of the replicas, and is over when a data plane of each
// replica has it.
type sharedPushes struct{ endpoints, trips int }

func (s *sharedPushes) name() string     { return ofReplicas + "report to the push on all three" }
func (s *sharedPushes) turns(l *lab) int { return l.turns }

func (s *sharedPushes) figures() []figure {
	return []figure{
		{name: "p50", unit: "ms", floor: onlyEtcd, beyond: alone, mark: 5},
		{name: "p99", unit: "ms", floor: onlyEtcd, beyond: alone, mark: 10},
		{name: "a sync of etcd's disk meanwhile, mean", unit: "ms"},
	}
}

func (s *sharedPushes) hdsd(l *lab, binary string) (*contender, error) {
	return s.contender(l, binary, true)
}

func (s *sharedPushes) contender(l *lab, binary string, several bool) (*contender, error) {
	w := scale.NewWorld(s.endpoints/10, 10)
	g, err := newGroup(l, binary, several, w, replicas, 1, fmt.Sprintf(settings, 1, 1.0))
	if err != nil {
		return nil, err
	}
	next := 0
	flip := func() (time.Duration, error) {
		endpoint, down := next%w.Size(), next/w.Size()%2 == 0
		next++
		checkers := g.crew.checkersOf()[endpoint]
		if len(checkers) != 1 {
			return 0, errUnassigned
		}
		wait := g.expect([]int{endpoint}, down)
		w.Set(endpoint, down)
		report := checkers[0].bytes()
		pause()
		began := time.Now()
		if err := checkers[0].write(report); err != nil {
			return 0, err
		}
		_, last, err := wait()
		return last.Sub(began), err
	}
	return &contender{name: alone, close: g.close, turn: func() ([]float64, error) {
		syncs, seconds := 0.0, 0.0
		if several {
			if syncs, seconds, err = g.etcd.syncs(); err != nil {
				return nil, err
			}
		}
		var took []time.Duration
		for range s.trips {
			duration, err := flip()
			if err != nil {
				return nil, err
			}
			took = append(took, duration)
		}
		sync := math.NaN()
		if several {
			laterSyncs, laterSeconds, err := g.etcd.syncs()
			if err != nil {
				return nil, err
			}
			sync = (laterSeconds - seconds) / (laterSyncs - syncs) * 1000
		}
		return append(quantiles(took), sync), nil
	}}, nil
}

func (s *sharedPushes) others(l *lab) ([]*contender, error) {
	return beside(l, s, func(p *putter) ([]float64, error) {
		const size = 100
		took, err := p.puts(s.trips, size, pause)
		return append(quantiles(took), math.NaN()), err
	})
}

// beside is a coordinator alone, and etcd alone.
func beside(l *lab, s interface {
	contender(l *lab, binary string, several bool) (*contender, error)
}, turn func(p *putter) ([]float64, error)) ([]*contender, error) {
	single, err := s.contender(l, l.binary, false)
	if err != nil {
		return nil, err
	}
	p, err := newPutter(l.dir)
	if err != nil {
		return []*contender{single}, err
	}
	return []*contender{single, {name: onlyEtcd, close: p.close, turn: func() ([]float64, error) { return turn(p) }}}, nil
}

// losses is a leader that ends, while endpoints of checkers of the other replicas fail.
type losses struct{ endpoints int }

func (s *losses) name() string     { return ofReplicas + "the leader ends while endpoints fail" }
func (s *losses) turns(l *lab) int { return min(l.turns, 3) }

func (s *losses) figures() []figure {
	return []figure{
		{name: "SIGTERM: longest wait for a push on all that are left", unit: "ms", floor: onlyEtcd, itself: true, mark: 100},
		{name: "kill -9: longest wait for a push on all that are left", unit: "ms", floor: onlyEtcd, itself: true, mark: 200},
	}
}

func (s *losses) hdsd(l *lab, binary string) (*contender, error) { return s.contender(l, binary, true) }

func (s *losses) contender(l *lab, binary string, several bool) (*contender, error) {
	w := scale.NewWorld(s.endpoints/10, 10)
	g, err := newGroup(l, binary, several, w, replicas, 1, fmt.Sprintf(settings, 1, 1.0))
	if err != nil {
		return nil, err
	}
	return &contender{name: alone, close: g.close, turn: func() (values []float64, err error) {
		for _, end := range []func(*process){(*process).terminate, func(p *process) { p.kill() }} {
			longest, err := g.lose(end)
			if err != nil {
				return nil, err
			}
			values = append(values, milliseconds(longest))
		}
		return values, nil
	}}, nil
}

func (s *losses) others(l *lab) ([]*contender, error) {
	return beside(l, s, func(p *putter) ([]float64, error) {
		var took []float64
		for range len(s.figures()) {
			wait, err := p.succeed()
			if err != nil {
				return nil, err
			}
			took = append(took, milliseconds(wait))
		}
		return took, nil
	})
}

// terminate ends it by SIGTERM.
func (p *process) terminate() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended already
	<-p.exited
}

// lose ends the leader in the middle of failures, and returns the longest time from a failure to its last push. A
// coordinator alone starts again at once. In the end, all is as before.
func (g *group) lose(end func(*process)) (longest time.Duration, err error) {
	const apart, before, after = 10 * time.Millisecond, 30, 120
	leader, err := g.leader()
	if err != nil {
		return 0, err
	}
	var victims []int
	owners := map[int]*checker{}
	for i, k := range g.crew.all {
		if g.etcd == nil || i%replicas != leader {
			endpoints := k.endpoints()
			victims = append(victims, endpoints[:min(len(endpoints), (before+after)/2)]...)
			for _, e := range endpoints {
				owners[e] = k
			}
		}
	}
	if len(victims) < before+after {
		return 0, fmt.Errorf("%d endpoints are too few to fail: %w", len(victims), errUnassigned)
	}
	victims = victims[:before+after]
	left := slices.Clone(g.planes)
	if g.etcd != nil {
		left = slices.Delete(left, leader, leader+1)
	}
	ended := make(chan error, 1)
	failed := make([]time.Time, len(victims))
	ticker := time.NewTicker(apart)
	defer ticker.Stop()
	for i, e := range victims {
		if i == before {
			go func() {
				end(g.all[leader].process)
				if g.etcd == nil {
					ended <- g.reopen(leader)
					return
				}
				ended <- nil
			}()
		}
		<-ticker.C
		failed[i] = time.Now()
		g.world.Set(e, true)
		_, _ = owners[e].send() // without a stream, the next one begins with a report
	}
	if err := <-ended; err != nil {
		return 0, err
	}
	now := slices.Clone(left)
	if g.etcd == nil {
		now = g.planes
	}
	for i, p := range now {
		if _, err := p.expect(victims, true)(); err != nil {
			return 0, err
		}
		for n, e := range victims {
			push := left[i].toldDown(e)
			if push.IsZero() {
				push = p.toldDown(e)
			}
			longest = max(longest, push.Sub(failed[n]))
		}
	}
	if g.etcd != nil {
		if err := g.reopen(leader); err != nil {
			return 0, err
		}
	}
	wait := g.expect(victims, false)
	for _, e := range victims {
		g.world.Set(e, false)
	}
	for _, k := range g.crew.all {
		_, _ = k.send() // or it does so when it is connected
	}
	if _, _, err := wait(); err != nil {
		return 0, err
	}
	return longest, g.settle(1)
}

// reopen starts a replica again, with a data plane; a coordinator alone with all data planes.
func (g *group) reopen(replica int) error {
	if err := g.all[replica].start(); err != nil {
		return err
	}
	for i := range g.planes {
		if g.etcd != nil && i != replica {
			continue
		}
		g.planes[i].leave()
		p, err := g.plane(g.all[replica].grpc)
		if err != nil {
			return err
		}
		g.planes[i] = p
	}
	return nil
}
