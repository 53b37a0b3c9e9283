package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"

	"hdsd/internal/wire"
	"hdsd/test/scale"
)

const dropsBytes = "drops the bytes"

// reports is full reports at full speed.
type reports struct {
	title             string
	checkers, entries int
	changed           float64 // share of the entries that change in every report
	started           bool    // hdsd has begun just before, and still writes the first verdicts
	mark              float64

	bodies []body // a report of each checker, for the others to take
}

// body is a report.
type body struct {
	bytes   wire.Bytes
	entries int
}

func (s *reports) name() string     { return s.title }
func (s *reports) turns(l *lab) int { return l.turns }

func (s *reports) figures() []figure {
	return []figure{{name: "CPU of a million entries", unit: "ms", floor: dropsBytes, mark: s.mark}}
}

const redundancy = 3

// settings of hdsd that let a fleet be there soon, and send at full speed.
const settings = "assignment: {redundancy: %d, settle: 0.5s}\ncheckers: {probation: 0s}\nreporting: {interval: %gs}\n"

// flood is how long a turn sends.
const flood = time.Second

// hdsdReports is hdsd under reports.
type hdsdReports struct {
	s *reports
	h *hdsd
	c *crew
	p *plane

	round  int
	random *rand.Rand
}

func (s *reports) hdsd(l *lab, binary string) (*contender, error) {
	endpoints := s.checkers * s.entries / redundancy
	clusters := max(1, endpoints/1000)
	w := scale.NewWorld(clusters, endpoints/clusters)
	h, err := newHDSD(l.dir, binary, w, fmt.Sprintf(settings, redundancy, 1.0))
	if err != nil {
		return nil, err
	}
	if err := h.start(); err != nil {
		return nil, err
	}
	r := &hdsdReports{s: s, h: h, c: newCrew(h.grpc, w, s.checkers, time.Second), random: rand.New(rand.NewPCG(1, 2))}
	ends := func() {
		h.kill()
		r.c.leave()
		if r.p != nil {
			r.p.leave()
		}
	}
	if err = r.c.settle(h, redundancy); err == nil {
		r.p, err = newPlane(h.grpc, w)
	}
	if err != nil {
		ends()
		return nil, err
	}
	for _, k := range r.c.all {
		if n := k.assigned(); n > 0 { // of small fleets, some have nothing
			s.bodies = append(s.bodies, body{bytes: k.bytes(), entries: n})
		}
	}
	return &contender{turn: r.turn, close: ends}, nil
}

// restart begins anew, with nothing on disk.
func (r *hdsdReports) restart() error {
	r.h.kill()
	r.p.leave()
	if err := os.RemoveAll(filepath.Join(r.h.dir, "data")); err != nil {
		return err
	}
	err := r.h.start()
	if err == nil {
		err = r.c.settle(r.h, redundancy)
	}
	if err == nil {
		r.p, err = newPlane(r.h.grpc, r.c.world)
	}
	return err
}

func (r *hdsdReports) turn() ([]float64, error) {
	if r.s.started {
		if err := r.restart(); err != nil {
			return nil, err
		}
	}
	before, err := r.h.processor()
	if err != nil {
		return nil, err
	}
	counted, err := r.read()
	if err != nil {
		return nil, err
	}
	sent, entries, err := r.send()
	if err != nil {
		return nil, err
	}
	if err := r.flip(true); err != nil {
		return nil, err
	}
	err = until("hdsd to read all reports", 20*time.Millisecond, func() (bool, error) {
		now, err := r.read()
		return now-counted >= float64(sent), err
	})
	if err != nil {
		return nil, err
	}
	after, err := r.h.processor()
	if err != nil {
		return nil, err
	}
	return []float64{milliseconds(after-before) / float64(entries) * 1e6}, r.flip(false)
}

// read is how many reports hdsd has read.
func (r *hdsdReports) read() (total float64, err error) {
	text, err := r.h.get("/metrics")
	if err != nil {
		return 0, err
	}
	for _, kind := range []string{"unchanged", "changed", "unexpected"} {
		_, rest, _ := strings.Cut(string(text), "\nhdsd_hds_reports_total{kind=\""+kind+"\"} ")
		value, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric hdsd_hds_reports_total of %s: %w", kind, err)
		}
		total += n
	}
	return total, nil
}

// send has all checkers report at full speed, for a time.
func (r *hdsdReports) send() (sent, entries int64, err error) {
	var group sync.WaitGroup
	var reports, each atomic.Int64
	errs := make([]error, len(r.c.all))
	end := time.Now().Add(flood)
	for i, k := range r.c.all {
		if k.assigned() == 0 {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(i), r.random.Uint64()))
		group.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				var n int
				n, errs[i] = k.sendChanged(r.s.changed, random)
				reports.Add(1)
				each.Add(int64(n))
			}
		})
	}
	group.Wait()
	return reports.Load(), each.Load(), errors.Join(errs...)
}

// sendChanged reports with a share of the entries other than in the last report. Each
// second report says the truth again.
func (k *checker) sendChanged(share float64, random *rand.Rand) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == nil {
		return 0, errUnassigned
	}
	if share == 0 {
		if k.same == nil {
			k.same = k.report.Next()
		}
		return k.report.Len(), k.stream.SendMsg(&k.same)
	}
	k.same = nil
	var message wire.Bytes
	if k.lied = !k.lied; k.lied {
		entries := make([]int, max(1, int(share*float64(k.report.Len()))))
		start := random.IntN(k.report.Len())
		for i := range entries {
			entries[i] = (start + i*k.report.Len()/len(entries)) % k.report.Len()
		}
		message = k.report.Toggled(entries...)
	} else {
		message = k.report.Next()
	}
	return k.report.Len(), k.stream.SendMsg(&message)
}

// flip has endpoints fail, or recover, and waits until a data plane has been told: one of
// every checker, but at most a twentieth of all.
func (r *hdsdReports) flip(down bool) error {
	if down {
		r.round++
	}
	var victims []int
	step := max(1, 20*len(r.c.all)/r.c.world.Size())
	for i := r.round % step; i < len(r.c.all); i += step {
		if of := r.c.all[i].endpoints(); len(of) > 0 {
			victims = append(victims, of[r.round%len(of)])
		}
	}
	for _, e := range victims {
		r.c.world.Set(e, down)
	}
	wait := r.p.expect(victims, down)
	if err := r.c.sendAll(); err != nil {
		return err
	}
	_, err := wait()
	return err
}

// sink is a server that takes reports, and a stream for each checker.
type sink struct {
	*process
	bodies  []body
	streams []grpc.ClientStream
	close   func()
}

func newSink(l *lab, bodies []body, arguments ...string) (*sink, error) {
	p, address, err := helper(l.dir, arguments...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &sink{process: p, bodies: bodies}
	var hangUps []func() error
	k.close = func() {
		cancel()
		for _, hangUp := range hangUps {
			_ = hangUp()
		}
		p.kill()
	}
	for range bodies {
		stream, hangUp, err := scale.Dial(ctx, address, healthv3.HealthDiscoveryService_StreamHealthCheck_FullMethodName)
		if err != nil {
			k.close()
			return nil, err
		}
		k.streams, hangUps = append(k.streams, stream), append(hangUps, hangUp)
	}
	return k, nil
}

// turn sends at full speed, and waits until all has been read.
func (k *sink) turn() ([]float64, error) {
	before, err := k.processor()
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	var entries atomic.Int64
	errs := make([]error, len(k.streams))
	end := time.Now().Add(flood)
	for i, stream := range k.streams {
		group.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				errs[i] = stream.SendMsg(&k.bodies[i].bytes)
				entries.Add(int64(k.bodies[i].entries))
			}
			if errs[i] == nil {
				errs[i] = stream.SendMsg(&marker)
			}
			if errs[i] == nil {
				var answer wire.Bytes
				errs[i] = stream.RecvMsg(&answer)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	after, err := k.processor()
	return []float64{milliseconds(after-before) / float64(entries.Load()) * 1e6}, err
}

func (s *reports) others(l *lab) (all []*contender, err error) {
	for _, other := range []struct {
		name      string
		arguments []string
	}{{dropsBytes, []string{plainFloor}}, {dropsBytes + asTuned, []string{tunedFloor}}, {"Unmarshal and a map", []string{"peer", "unmarshal"}}} {
		k, err := newSink(l, s.bodies, other.arguments...)
		if err != nil {
			return all, err
		}
		all = append(all, &contender{name: other.name, turn: k.turn, close: k.close})
	}
	return all, nil
}
