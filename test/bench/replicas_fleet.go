package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"hdsd/test/scale"
)

// sharedFleet is the life of a large fleet on replicas: rest, and then all endpoints fail, with all votes in one second.
// Each turn is a life of its own.
type sharedFleet struct {
	endpoints, clusters, checkers int
	rest                          time.Duration
	markCPU                       float64 // of a small fleet, most of the processor time is not for reports
}

func (s *sharedFleet) name() string {
	return fmt.Sprintf("%s%d endpoints x 3 on %d checkers", ofReplicas, s.endpoints, s.checkers)
}
func (s *sharedFleet) turns(l *lab) int { return l.lives }

// The figures, in this order.
const (
	writesFigure = iota
	leaderFigure
	followerFigure
	etcdFigure
	halfFigure
	votesFigure
	lagFigure
	failureFigure
	figuresOfASharedFleet
)

func (s *sharedFleet) figures() []figure {
	all := make([]figure, figuresOfASharedFleet)
	all[writesFigure] = figure{name: "etcd's writes at rest, reports every second", unit: "/s", floor: onlyEtcd, itself: true, mark: 1}
	all[leaderFigure] = figure{name: "CPU of the leader at rest, reports every second", unit: "cores", floor: alone, mark: s.markCPU}
	all[followerFigure] = figure{name: "CPU of a follower at rest", unit: "cores"}
	all[etcdFigure] = figure{name: "CPU of all etcd servers at rest", unit: "cores"}
	all[halfFigure] = figure{name: "all fail, all votes in one second: deciding report to the last push, p50", unit: "ms", floor: alone}
	all[votesFigure] = figure{name: "the same: p99", unit: "ms", floor: alone}
	all[lagFigure] = figure{name: "the same: the last replica's push after the first's, p99", unit: "ms", floor: onlyEtcd, itself: true, mark: 50}
	all[failureFigure] = figure{name: "the same: CPU of the leader", unit: "s", floor: alone}
	return all
}

func (s *sharedFleet) hdsd(l *lab, binary string) (*contender, error) {
	return s.contender(l, binary, true)
}

func (s *sharedFleet) contender(l *lab, binary string, several bool) (*contender, error) {
	return &contender{name: alone, close: func() {}, turn: func() ([]float64, error) {
		w := scale.NewWorld(s.clusters, s.endpoints/s.clusters)
		g, err := newGroup(l, binary, several, w, s.checkers, redundancy, "checkers: {probation: 0s}\n")
		if err != nil {
			return nil, err
		}
		defer g.close()
		figures := make([]float64, figuresOfASharedFleet)
		for i := range figures {
			figures[i] = math.NaN()
		}
		if err := s.atRest(g, figures); err != nil {
			return nil, err
		}
		return figures, s.fail(g, figures)
	}}, nil
}

func (s *sharedFleet) others(l *lab) ([]*contender, error) {
	return beside(l, s, func(p *putter) ([]float64, error) {
		figures := make([]float64, figuresOfASharedFleet)
		for i := range figures {
			figures[i] = math.NaN()
		}
		var err error
		if figures[writesFigure], err = p.rest(replicas, s.rest); err != nil {
			return nil, err
		}
		const count, record = 200, 16 // a second of commits, of records
		took, err := p.puts(count, s.endpoints*record/count, func() {})
		if err == nil {
			figures[lagFigure] = quantiles(took)[1]
		}
		return figures, err
	})
}

// sample is what processes have used.
type sample struct {
	time             time.Time
	leader, all, own time.Duration // of the leader, of all replicas, of etcd
	writes           float64
}

func (g *group) sample(leader int) (t sample, err error) {
	t.time = time.Now()
	for i, h := range g.all {
		used, err := h.processor()
		if err != nil {
			return t, err
		}
		if t.all += used; i == leader {
			t.leader = used
		}
	}
	if g.etcd == nil {
		return t, nil
	}
	if t.own, err = g.etcd.processor(); err == nil {
		t.writes, err = g.etcd.writes()
	}
	return t, err
}

func (s *sharedFleet) atRest(g *group, figures []float64) error {
	const quiet = 2 * time.Second
	time.Sleep(quiet) // the history may still be written
	leader, err := g.leader()
	if err != nil {
		return err
	}
	before, err := g.sample(leader)
	if err != nil {
		return err
	}
	time.Sleep(s.rest)
	after, err := g.sample(leader)
	if err != nil {
		return err
	}
	seconds := after.time.Sub(before.time).Seconds()
	used := (after.leader - before.leader)
	figures[leaderFigure] = used.Seconds() / seconds
	if g.etcd != nil {
		figures[followerFigure] = (after.all - before.all - used).Seconds() / (replicas - 1) / seconds
		figures[etcdFigure] = (after.own - before.own).Seconds() / seconds
		figures[writesFigure] = (after.writes - before.writes) / seconds
	}
	return nil
}

// fail has all endpoints fail. The checkers report one after the other, all within a second.
func (s *sharedFleet) fail(g *group, figures []float64) error {
	const written = "hdsd_history_committed_total"
	leader, err := g.leader()
	if err != nil {
		return err
	}
	up := g.expect(g.seen, false)
	if _, _, err := up(); err != nil {
		return err
	}
	counted := make([]float64, len(g.all))
	for i, h := range g.all {
		if counted[i], err = h.metric(written); err != nil {
			return err
		}
	}
	before, err := g.sample(leader)
	if err != nil {
		return err
	}
	checkers := g.crew.checkersOf()
	down := g.expect(g.seen, true)
	g.crew.failAll()
	if _, _, err := down(); err != nil {
		return err
	}
	after, err := g.sample(leader)
	if err != nil {
		return err
	}
	figures[failureFigure] = (after.leader - before.leader).Seconds()
	var whole, lag []time.Duration
	for _, e := range g.seen {
		var votes []time.Time
		for _, k := range checkers[e] {
			votes = append(votes, k.reported())
		}
		slices.SortFunc(votes, time.Time.Compare)
		first, last := g.told(e)
		whole = append(whole, last.Sub(votes[redundancy/2])) // two of three decide
		lag = append(lag, last.Sub(first))
	}
	copy(figures[halfFigure:], quantiles(whole))
	if g.etcd != nil {
		figures[lagFigure] = quantiles(lag)[1]
	}
	for i, h := range g.all {
		var now float64
		err := until("the history to have each failure", 20*time.Millisecond, func() (bool, error) {
			now, err = h.metric(written)
			return now-counted[i] >= float64(g.world.Size()), err
		})
		if err != nil {
			return err
		}
		if now-counted[i] != float64(g.world.Size()) {
			return fmt.Errorf("a history has %g transitions of %d failures", now-counted[i], g.world.Size())
		}
	}
	return nil
}

// failAll makes all endpoints fail, between two reports of each checker.
func (c *crew) failAll() {
	for _, k := range c.all {
		k.mu.Lock()
	}
	for i := range c.world.Size() {
		c.world.Set(i, true)
	}
	for _, k := range c.all {
		k.first = time.Time{}
		k.mu.Unlock()
	}
}

// reported is when it first reported since everything failed.
func (k *checker) reported() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.first
}

// told is when the first and the last data plane was told that an endpoint is down.
func (g *group) told(endpoint int) (first, last time.Time) {
	for _, p := range g.planes {
		push := p.toldDown(endpoint)
		if first.IsZero() || push.Before(first) {
			first = push
		}
		if push.After(last) {
			last = push
		}
	}
	return first, last
}
