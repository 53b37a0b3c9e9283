package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

// echoes is one subscriber, and a report of 119 kB: how long after it the push comes, and
// an echo of the same bytes. The load makes a report of its own for each, before it is timed.
type echoes struct {
	entries int

	report, push wire.Bytes
}

func (s *echoes) name() string {
	return fmt.Sprintf("report to push, one data plane, report of %d entries", s.entries)
}
func (s *echoes) turns(l *lab) int { return l.turns }

const plainEcho = "gRPC echo"

func (s *echoes) figures() []figure {
	return []figure{{name: "p50", unit: "ms", floor: plainEcho, mark: 1.5}, {name: "p99", unit: "ms", floor: plainEcho, mark: 1.5}}
}

// trips is how many make a turn.
const trips = 200

func quantiles(took []time.Duration) []float64 {
	all := make([]float64, len(took))
	for i, t := range took {
		all[i] = milliseconds(t)
	}
	return []float64{quantile(all, 0.5), quantile(all, 0.99)}
}

func (s *echoes) hdsd(l *lab, binary string) (*contender, error) {
	const each = 10
	inner := &pushes{title: s.name(), subscribers: 1, clusters: s.entries / each, delta: true, world: scale.NewWorld(s.entries/each, each)}
	p, err := inner.publish(l, binary, 1)
	if err != nil {
		return nil, err
	}
	p.look(nil) // one subscriber is measured; it has the name of the cluster
	only := p.crew.all[0]
	s.report, s.push = only.bytes(), inner.frame
	var report wire.Bytes
	p.ready = func(endpoint int, down bool) {
		inner.world.Set(endpoint, down)
		report = only.bytes()
	}
	p.flip = func(int, bool) error { return only.write(report) }
	return &contender{close: p.close, turn: func() ([]float64, error) {
		var took []time.Duration
		for range trips {
			one, err := p.one()
			if err != nil {
				return nil, err
			}
			took = append(took, one)
		}
		return quantiles(took), nil
	}}, nil
}

func (s *echoes) others(l *lab) (all []*contender, err error) {
	for _, floor := range []struct{ kind, name string }{{plainFloor, plainEcho}, {tunedFloor, plainEcho + asTuned}} {
		c, err := s.echo(l, floor.kind, floor.name)
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (s *echoes) echo(l *lab, kind, name string) (*contender, error) {
	process, address, err := helper(l.dir, kind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, hangUp, err := scale.Dial(ctx, address, echoMethod)
	if err == nil {
		err = stream.SendMsg(&s.push)
	}
	if err != nil {
		cancel()
		process.kill()
		return nil, err
	}
	return &contender{
		name: name, close: func() { cancel(); _ = hangUp(); process.kill() },
		turn: func() ([]float64, error) { return roundTrips(stream, s.report) },
	}, nil
}

func roundTrips(stream grpc.ClientStream, report wire.Bytes) ([]float64, error) {
	var took []time.Duration
	for range trips {
		message := bytes.Clone(report)
		began := time.Now()
		if err := stream.SendMsg((*wire.Bytes)(&message)); err != nil {
			return nil, err
		}
		var answer wire.Bytes
		if err := stream.RecvMsg(&answer); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return quantiles(took), nil
}
