package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hdsd/test/scale"
)

// watchers is many who watch everything over HTTP while all endpoints fail and recover. An
// endpoint may change only a few times: hdsd paces those that change more often.
type watchers struct {
	title               string
	watchers, endpoints int
	transitions         int
	markTime            float64
}

func (s *watchers) name() string     { return s.title }
func (s *watchers) turns(l *lab) int { return l.lives }

func (s *watchers) figures() []figure {
	return []figure{{name: "until each has seen all", unit: "s", mark: s.markTime}, {name: "CPU", unit: "s"}, {name: "resident memory after it", unit: "MB"}}
}

func (s *watchers) others(*lab) ([]*contender, error) { return nil, nil }

func (s *watchers) hdsd(l *lab, binary string) (*contender, error) {
	return &contender{turn: func() ([]float64, error) { return s.life(l, binary) }, close: func() {}}, nil
}

// crowd is their connections.
type crowd struct {
	running sync.WaitGroup
	all     []net.Conn
	synced  atomic.Int64
	seen    []atomic.Int64 // transitions, by watcher
}

// join connects one.
func (c *crowd) join(ctx context.Context, i int, server string) error {
	one, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	c.all = append(c.all, one)
	if _, err := io.WriteString(one, "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	c.running.Go(func() {
		in := bufio.NewReaderSize(one, 32<<10)
		for {
			line, err := in.ReadSlice('\n')
			switch {
			case errors.Is(err, bufio.ErrBufferFull): // the rest of a long line
			case err != nil:
				return // the wait says how many it has seen
			case bytes.HasPrefix(line, []byte("event: transition")):
				c.seen[i].Add(1)
			case bytes.HasPrefix(line, []byte("event: synced")):
				c.synced.Add(1)
			}
		}
	})
	return nil
}

func (c *crowd) leave() {
	for _, one := range c.all {
		_ = one.Close()
	}
	c.running.Wait()
}

// least is what the one has seen that has seen least.
func (c *crowd) least() int64 {
	least := c.seen[0].Load()
	for i := range c.seen {
		least = min(least, c.seen[i].Load())
	}
	return least
}

func (s *watchers) life(l *lab, binary string) ([]float64, error) {
	w := scale.NewWorld(s.endpoints/100, 100)
	h, err := newHDSD(l.dir, binary, w, fmt.Sprintf(settings, redundancy, 0.25))
	if err != nil {
		return nil, err
	}
	if err := h.start(); err != nil {
		return nil, err
	}
	c := newCrew(h.grpc, w, 6, 250*time.Millisecond)
	audience := &crowd{seen: make([]atomic.Int64, s.watchers)}
	defer func() { h.kill(); c.leave(); audience.leave() }()
	if err := c.settle(h, redundancy); err != nil {
		return nil, err
	}
	for i := range s.watchers {
		if err := audience.join(context.Background(), i, h.http); err != nil {
			return nil, err
		}
	}
	err = until("watchers to be synced", 20*time.Millisecond, func() (bool, error) { return audience.synced.Load() == int64(s.watchers), nil })
	if err != nil {
		return nil, err
	}
	return s.flips(h, c, audience)
}

// flips has all endpoints change, until there are enough transitions.
func (s *watchers) flips(h *hdsd, c *crew, audience *crowd) ([]float64, error) {
	before, err := h.processor()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	down := false
	for done := s.endpoints; done <= s.transitions; done += s.endpoints {
		down = !down
		for i := range s.endpoints {
			c.world.Set(i, down)
		}
		err := until(fmt.Sprintf("each watcher to see %d transitions", done), 10*time.Millisecond, func() (bool, error) {
			return audience.least() >= int64(done), nil
		})
		if err != nil {
			return nil, fmt.Errorf("%w; one saw %d", err, audience.least())
		}
	}
	took := time.Since(began)
	after, err := h.processor()
	if err != nil {
		return nil, err
	}
	resident, err := h.resident()
	return []float64{took.Seconds(), (after - before).Seconds(), float64(resident) / 1e6}, err
}
