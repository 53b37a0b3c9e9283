package main

import (
	"fmt"
	"time"

	"hdsd/test/scale"
)

// sharedStreams is many checkers and data planes, spread over the replicas. Endpoints flip at a steady pace. Where
// processors are what ends, three replicas carry as many times the streams of a coordinator alone as the busiest of
// them has less to do for the same streams.
type sharedStreams struct{ clusters, checkers, subscribers int }

const (
	streamFlips    = 50 // of a turn
	streamInterval = 100 * time.Millisecond
)

func (s *sharedStreams) name() string {
	return fmt.Sprintf("%sstreams of %d checkers and %d data planes, %g flips a second", ofReplicas, s.checkers, s.subscribers, 1/streamInterval.Seconds())
}

func (s *sharedStreams) turns(l *lab) int { return min(l.turns, 3) }

func (s *sharedStreams) figures() []figure {
	const share = 0.37 // three replicas carry 2.7 times as many streams
	return []figure{
		{name: "CPU of the busiest replica", unit: "cores", floor: alone, mark: share},
		{name: "CPU of all replicas", unit: "cores", floor: alone},
	}
}

func (s *sharedStreams) hdsd(l *lab, binary string) (*contender, error) {
	return s.contender(l, binary, true)
}

func (s *sharedStreams) others(l *lab) ([]*contender, error) {
	single, err := s.contender(l, l.binary, false)
	return []*contender{single}, err
}

func (s *sharedStreams) contender(l *lab, binary string, several bool) (*contender, error) {
	w := scale.NewWorld(s.clusters, endpointsOfACluster*10)
	g, err := newGroup(l, binary, several, w, s.checkers, redundancy, "checkers: {probation: 0s}\n")
	if err != nil {
		return nil, err
	}
	var audiences []*audience
	leave := func() {
		for _, a := range audiences {
			a.leave()
		}
		g.close()
	}
	for _, h := range g.all {
		a, err := newAudience(h.grpc, w, s.subscribers/len(g.all), s.clusters, true)
		if err != nil {
			leave()
			return nil, err
		}
		audiences = append(audiences, a)
	}
	next := 0
	return &contender{name: alone, close: leave, turn: func() ([]float64, error) {
		before, err := g.processors()
		if err != nil {
			return nil, err
		}
		began, ticker := time.Now(), time.NewTicker(streamInterval)
		defer ticker.Stop()
		for range streamFlips {
			<-ticker.C
			if err := g.flip(next%w.Size(), next/w.Size()%2 == 0); err != nil {
				return nil, err
			}
			next += s.clusters + 1
		}
		after, err := g.processors()
		seconds, busiest, all := time.Since(began).Seconds(), 0.0, 0.0
		for i := range after {
			used := (after[i] - before[i]).Seconds() / seconds
			busiest, all = max(busiest, used), all+used
		}
		for _, a := range audiences {
			if failed := a.failed.Load(); failed != nil {
				return nil, *failed
			}
		}
		return []float64{busiest, all}, err
	}}, nil
}

// processors returns the processor time of each replica.
func (g *group) processors() (used []time.Duration, err error) {
	for _, h := range g.all {
		took, err := h.processor()
		if err != nil {
			return nil, err
		}
		used = append(used, took)
	}
	return used, nil
}

// flip lets an endpoint fail or recover, and waits until a data plane of each replica has it.
func (g *group) flip(endpoint int, down bool) error {
	wait := g.expect([]int{endpoint}, down)
	g.world.Set(endpoint, down)
	for _, k := range g.crew.checkersOf()[endpoint] {
		if _, err := k.send(); err != nil {
			return err
		}
	}
	_, _, err := wait()
	return err
}
