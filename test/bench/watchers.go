package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hdsd/test/scale"
)

// watchers is many who watch everything over HTTP while all endpoints fail and recover. An
// endpoint may change only a few times: hdsd paces those that change more often.
type watchers struct {
	title               string
	watchers, endpoints int
	transitions         int
	markTime            float64

	seen []byte // what hdsd wrote to one watcher
}

func (s *watchers) name() string     { return s.title }
func (s *watchers) turns(l *lab) int { return l.lives }

const sameTexts = "writes the same texts"

func (s *watchers) figures() []figure {
	return []figure{
		{name: "until each has seen all", unit: "s", mark: s.markTime}, {name: "CPU", unit: "s", floor: sameTexts},
		{name: "the time beside the floor's", unit: "s", floor: sameTexts}, {name: "CPU of the watchers and checkers", unit: "s", floor: sameTexts},
		{name: "resident memory after it", unit: "MB", floor: sameTexts},
	}
}

func (s *watchers) hdsd(l *lab, binary string) (*contender, error) {
	return &contender{turn: func() ([]float64, error) { return s.life(l, binary) }, close: func() {}}, nil
}

// others is a server that writes what hdsd wrote to one watcher to all of them. Its turn
// comes after one of hdsd.
func (s *watchers) others(l *lab) ([]*contender, error) {
	return []*contender{{name: sameTexts, turn: func() ([]float64, error) { return s.floor(l) }, close: func() {}}}, nil
}

// crowd is their connections.
type crowd struct {
	running sync.WaitGroup
	all     []net.Conn
	synced  atomic.Int64
	seen    []atomic.Int64 // transitions, by watcher

	texts bytes.Buffer // of the first watcher; once all have left
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
	c.running.Go(func() { c.read(i, one) })
	return nil
}

// Events by their names. They begin with a byte that is rare, so that they are found quickly.
var syncedEvent, transitionEvent = []byte("\nevent: synced\n"), []byte("\nevent: transition\n")

// read counts events, at as little cost as it can: it takes its time from those who write.
func (c *crowd) read(i int, from io.Reader) {
	room := make([]byte, 64<<10)
	kept := 0 // the end of what was read before: an event's name may come in two parts
	for {
		n, err := from.Read(room[kept:])
		if err != nil {
			return // the wait says how many it has seen
		}
		if i == 0 {
			c.texts.Write(room[kept : kept+n])
		}
		text := room[:kept+n]
		c.synced.Add(int64(bytes.Count(text, syncedEvent)))
		c.seen[i].Add(int64(bytes.Count(text, transitionEvent)))
		kept = copy(room, text[max(0, bytes.LastIndexByte(text, '\n')):])
		if kept == len(room) { // a long line is no event's name
			kept = 0
		}
	}
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
	defer func() { h.kill(); c.leave(); audience.leave(); s.seen = audience.transitions() }()
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

// transitions is what came to one watcher after it was synced.
func (c *crowd) transitions() []byte {
	_, texts, _ := bytes.Cut(c.texts.Bytes(), syncedEvent)
	return append([]byte("\n"), texts...)
}

// flips has all endpoints change, until there are enough transitions.
func (s *watchers) flips(h *hdsd, c *crew, audience *crowd) ([]float64, error) {
	return measured(h.process, func() error {
		down := false
		for done := s.endpoints; done <= s.transitions; done += s.endpoints {
			down = !down
			for i := range s.endpoints {
				c.world.Set(i, down)
			}
			if err := audience.await(done); err != nil {
				return err
			}
		}
		return nil
	})
}

// await waits until each has seen so many transitions.
func (c *crowd) await(done int) error {
	err := until(fmt.Sprintf("each watcher to see %d transitions", done), 10*time.Millisecond, func() (bool, error) { return c.least() >= int64(done), nil })
	if err != nil {
		err = fmt.Errorf("%w; one saw %d", err, c.least())
	}
	return err
}

// measured gives a value for each figure of some work that a process does.
func measured(p *process, work func() error) ([]float64, error) {
	before, err := p.processor()
	if err != nil {
		return nil, err
	}
	began, own := time.Now(), ownProcessor()
	if err := work(); err != nil {
		return nil, err
	}
	took, ownTook := time.Since(began), ownProcessor()-own
	after, err := p.processor()
	if err != nil {
		return nil, err
	}
	resident, err := p.resident()
	return []float64{took.Seconds(), (after - before).Seconds(), took.Seconds(), ownTook.Seconds(), float64(resident) / 1e6}, err
}

// ownProcessor is the processor time of this process.
func ownProcessor() time.Duration {
	var used unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used) // every kernel has it
	return time.Duration(used.Nano())
}

// floor is a turn of the server that writes the same.
func (s *watchers) floor(l *lab) ([]float64, error) {
	path := filepath.Join(l.dir, "texts")
	if err := os.WriteFile(path, s.seen, 0o600); err != nil {
		return nil, err
	}
	p, address, err := helper(l.dir, "texts", path, fmt.Sprint(s.watchers))
	if err != nil {
		return nil, err
	}
	audience := &crowd{seen: make([]atomic.Int64, s.watchers)}
	defer func() { p.kill(); audience.leave() }()
	for i := range s.watchers - 1 {
		if err := audience.join(context.Background(), i, address); err != nil {
			return nil, err
		}
	}
	return measured(p, func() error {
		if err := audience.join(context.Background(), s.watchers-1, address); err != nil {
			return err
		}
		return audience.await(bytes.Count(s.seen, transitionEvent))
	})
}

// textsAtOnce is about as much as hdsd writes at once to a watcher that is behind.
const textsAtOnce = 240 << 10

// serveTexts writes a file to each connection, once there are so many. It serves until the
// process ends.
func serveTexts(path string, connections int) error {
	texts, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	begin := make(chan struct{})
	for range connections {
		one, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			<-begin
			for rest := texts; len(rest) > 0; {
				n, err := one.Write(rest[:min(len(rest), textsAtOnce)])
				if err != nil {
					return // it has left
				}
				rest = rest[n:]
			}
		}()
	}
	close(begin)
	select {}
}
