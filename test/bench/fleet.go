package main

import (
	"fmt"
	"net/http"
	"time"

	"hdsd/test/scale"
)

// fleet is the life of a large fleet: a first start, rest, questions, a mass failure, kill -9.
// Each turn is a life of its own.
type fleet struct {
	title                         string
	endpoints, clusters, checkers int
	rest                          time.Duration
	marks                         map[string]float64
}

func (s *fleet) name() string     { return s.title }
func (s *fleet) turns(l *lab) int { return l.lives }

// The figures, in this order.
const (
	readyFigure = iota
	verdictsFigure
	startCPUFigure
	restFigure
	memoryFigure
	endpointsFigure
	zippedFigure
	availabilityFigure
	toldFigure
	durableFigure
	againFigure
	figuresOfAFleet
)

func (s *fleet) figures() []figure {
	all := make([]figure, figuresOfAFleet)
	all[readyFigure] = figure{name: "ready", unit: "s"}
	all[verdictsFigure] = figure{name: "every endpoint has its verdict", unit: "s"}
	all[startCPUFigure] = figure{name: "CPU until then", unit: "s"}
	all[restFigure] = figure{name: "CPU at rest, reports every second", unit: "cores"}
	all[memoryFigure] = figure{name: "resident memory of an endpoint", unit: "kB"}
	all[endpointsFigure] = figure{name: "/v1/endpoints, a page of 10,000", unit: "ms"}
	all[zippedFigure] = figure{name: "the same, compressed and decompressed", unit: "ms"}
	all[availabilityFigure] = figure{name: "/v1/availability, a page of 10,000", unit: "ms"}
	all[toldFigure] = figure{name: "all endpoints fail in one round: a data plane has the last", unit: "s"}
	all[durableFigure] = figure{name: "the same: all are in the history on disk", unit: "s"}
	all[againFigure] = figure{name: "after kill -9: all assigned again", unit: "s"}
	for i := range all {
		all[i].mark = s.marks[all[i].name]
	}
	return all
}

func (s *fleet) others(*lab) ([]*contender, error) { return nil, nil }

func (s *fleet) hdsd(l *lab, binary string) (*contender, error) {
	return &contender{turn: func() ([]float64, error) { return s.life(l, binary) }, close: func() {}}, nil
}

// life is one from the first start on.
type life struct {
	s       *fleet
	w       *scale.World
	h       *hdsd
	c       *crew
	figures []float64
}

func (s *fleet) life(l *lab, binary string) ([]float64, error) {
	w := scale.NewWorld(s.clusters, s.endpoints/s.clusters)
	h, err := newHDSD(l.dir, binary, w, "checkers: {probation: 0s}\n")
	if err != nil {
		return nil, err
	}
	f := &life{s: s, w: w, h: h, c: newCrew(h.grpc, w, s.checkers, time.Second), figures: make([]float64, figuresOfAFleet)}
	defer func() {
		if f.h.process != nil {
			f.h.kill()
		}
		f.c.leave()
	}()
	for _, part := range []func() error{f.start, f.atRest, f.ask, f.massFailure, f.again} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return f.figures, nil
}

func (f *life) start() error {
	began := time.Now()
	if err := f.h.start(); err != nil {
		return err
	}
	f.figures[readyFigure] = time.Since(began).Seconds()
	if err := f.c.settle(f.h, redundancy); err != nil {
		return err
	}
	f.figures[verdictsFigure] = time.Since(began).Seconds()
	used, err := f.h.processor()
	f.figures[startCPUFigure] = used.Seconds()
	return err
}

// atRest begins when the first verdicts are on disk, and ends with a flip, which a data plane is told of.
func (f *life) atRest() error {
	if err := until("the history to be on disk", 20*time.Millisecond, func() (bool, error) {
		pending, err := f.h.metric("hdsd_history_pending")
		return pending == 0, err
	}); err != nil {
		return err
	}
	before, err := f.h.processor()
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(f.s.rest)
	after, err := f.h.processor()
	if err != nil {
		return err
	}
	f.figures[restFigure] = (after - before).Seconds() / time.Since(began).Seconds()
	resident, err := f.h.resident()
	if err != nil {
		return err
	}
	f.figures[memoryFigure] = float64(resident) / 1000 / float64(f.w.Size())
	p, err := newPlane(f.h.grpc, f.w)
	if err != nil {
		return err
	}
	defer p.leave()
	for _, down := range []bool{true, false} {
		wait := p.expect([]int{0}, down)
		f.w.Set(0, down)
		if _, err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// ask is the median of a few calls each.
func (f *life) ask() error {
	const calls = 7
	for figure, page := range map[int]struct {
		client *http.Client
		path   string
	}{
		endpointsFigure:    {plain, "/v1/endpoints?pageSize=10000"},
		zippedFigure:       {zipped, "/v1/endpoints?pageSize=10000"},
		availabilityFigure: {plain, "/v1/availability?pageSize=10000"},
	} {
		var took []float64
		for range calls {
			began := time.Now()
			if _, err := f.h.getBy(page.client, page.path); err != nil {
				return err
			}
			took = append(took, milliseconds(time.Since(began)))
		}
		f.figures[figure] = spreadOf(took).median
	}
	return nil
}

// massFailure has everything fail at once. It ends when all of it is on disk.
func (f *life) massFailure() error {
	p, err := newPlane(f.h.grpc, f.w)
	if err != nil {
		return err
	}
	defer p.leave()
	all := make([]int, f.w.Size())
	for i := range all {
		all[i] = i
	}
	up := p.expect(all, false)
	if _, err := up(); err != nil {
		return err
	}
	const written = "hdsd_history_committed_total"
	before, err := f.h.metric(written)
	if err != nil {
		return err
	}
	for i := range all {
		f.w.Set(i, true)
	}
	wait := p.expect(all, true)
	began := time.Now()
	durable := make(chan error, 1)
	go func() {
		durable <- until("the history to have the mass failure", 20*time.Millisecond, func() (bool, error) {
			now, err := f.h.metric(written)
			f.figures[durableFigure] = time.Since(began).Seconds()
			return now-before >= float64(len(all)), err
		})
	}()
	err = f.c.sendAll()
	if err == nil {
		var at time.Time
		at, err = wait()
		f.figures[toldFigure] = at.Sub(began).Seconds()
	}
	if late := <-durable; err == nil {
		err = late
	}
	return err
}

// again is what comes after kill -9.
func (f *life) again() error {
	f.h.kill()
	began := time.Now()
	if err := f.h.start(); err != nil {
		return err
	}
	err := until("all endpoints to be assigned again", 50*time.Millisecond, func() (bool, error) {
		assigned := 0
		for _, k := range f.c.all {
			assigned += k.assigned()
		}
		return assigned == redundancy*f.w.Size(), nil
	})
	f.figures[againFigure] = time.Since(began).Seconds()
	if err != nil {
		return fmt.Errorf("after kill -9: %w", err)
	}
	return nil
}
