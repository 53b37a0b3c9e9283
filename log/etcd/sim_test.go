package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"hdsd/log/etcd"
	server "hdsd/test/etcd"
)

// proxy passes connections on to a server and, drawn from a seed, cuts them: before a request gets
// through, or before its answer does.
type proxy struct {
	target string
	mu     sync.Mutex
	random *rand.Rand // guarded by mu
	calm   bool       // no more cuts; guarded by mu
	cuts   int        // guarded by mu

	answers *rate.Limiter // bytes of answers; nil: without a limit; guarded by mu
}

// startProxy returns the proxy's URL beside it.
func startProxy(t *testing.T, s *server.Server, seed uint64) (*proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: s.Address, random: rand.New(rand.NewPCG(seed, 0))}
	var pipes sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	pipes.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			pipes.Go(func() { p.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		pipes.Wait()
	})
	return p, "http://" + listener.Addr().String()
}

func (p *proxy) serve(ctx context.Context, client net.Conn) {
	upstream, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	closeAll := func() { client.Close(); upstream.Close() }
	defer context.AfterFunc(ctx, closeAll)()
	var pipes sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, upstream}, {upstream, client}} {
		pipes.Go(func() {
			defer closeAll()
			buffer := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buffer)
				if err != nil || p.isCut() {
					return
				}
				if limit := p.answerLimit(); limit != nil && way[0] == upstream && limit.WaitN(ctx, n) != nil {
					return
				}
				if _, err := way[1].Write(buffer[:n]); err != nil {
					return
				}
			}
		})
	}
	pipes.Wait()
}

// isCut draws whether what was read is lost, and the connection with it.
func (p *proxy) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm || p.random.IntN(60) > 0 {
		return false
	}
	p.cuts++
	return true
}

func (p *proxy) answerLimit() *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers
}

// slowDown limits the bytes of answers.
func (p *proxy) slowDown(limit *rate.Limiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = limit
}

// setCalm ends the cuts, and returns how many there were.
func (p *proxy) setCalm() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
	return p.cuts
}

// acked are the commits that returned nil.
type acked struct {
	mu  sync.Mutex
	all map[string]uint64 // sequence by payload; guarded by mu
}

// TestSimulation: three replicas commit in turn over connections that lose requests and answers,
// and give up the leadership now and then. Every commit that returned nil is in the log once, at
// its place, and everyone reads the same.
func TestSimulation(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := server.Start(t)
	const head = 400
	commits := &acked{all: map[string]uint64{}}
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	var proxies []*proxy
	var readers []*reader
	var writers sync.WaitGroup
	for i, id := range []string{"a", "b", "c"} {
		p, url := startProxy(t, s, seed+uint64(i))
		log := join(t, open(t, id, func(o *etcd.Options) { o.Endpoints = []string{url} }), "", 0)
		proxies, readers = append(proxies, p), append(readers, follow(t, log, 0))
		random := rand.New(rand.NewPCG(seed, uint64(i)+1))
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := commits.lead(ctx, log, id, random, head); err != nil && ctx.Err() == nil && !errors.Is(err, etcd.ErrFenced) {
					t.Errorf("%s: %v", id, err)
					return
				}
			}
		})
	}
	plain := follow(t, join(t, open(t, "d", nil, s), "", 0), 0)
	until(t, plain.get, func(s state) bool { return s.Ended || s.head() >= head })
	cancel()
	writers.Wait()
	cuts := 0
	for _, p := range proxies {
		cuts += p.setCalm()
	}
	last, err := join(t, open(t, "e", nil, s), "", 0).Head(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	want := until(t, plain.get, func(s state) bool { return s.Ended || s.head() >= last }).Entries
	positions := map[string]uint64{}
	for i, e := range want {
		if e.Sequence != uint64(i)+1 {
			t.Fatalf("entry %d comes as number %d", e.Sequence, i+1)
		}
		if other, ok := positions[string(e.Payload)]; ok {
			t.Errorf("%s is entry %d and %d", e.Payload, other, e.Sequence)
		}
		positions[string(e.Payload)] = e.Sequence
	}
	for payload, sequence := range commits.all {
		if positions[payload] != sequence {
			t.Errorf("%s was acknowledged at %d and is at %d", payload, sequence, positions[payload])
		}
	}
	for i, r := range readers {
		got := until(t, r.get, func(s state) bool { return s.Ended || s.head() >= last })
		if fmt.Sprint(got.Entries) != fmt.Sprint(want) || got.Err != nil {
			t.Errorf("reader %d read other entries: %v", i, got.Err)
		}
	}
	t.Logf("%d entries, %d acknowledged, %d connections cut", len(want), len(commits.all), cuts)
}

// lead leads for a while, and commits up to an entry.
func (a *acked) lead(ctx context.Context, log *etcd.Log, id string, random *rand.Rand, head uint64) error {
	epoch, err := log.Campaign(ctx)
	if err != nil {
		return err
	}
	last, err := log.Head(ctx)
	if err != nil {
		return err
	}
	if last >= head {
		<-ctx.Done()
		return ctx.Err()
	}
	for range 1 + random.IntN(30) {
		last++
		text := fmt.Sprintf("%s %d %d", id, epoch, last)
		if err := log.Commit(ctx, epoch, last, []byte(text)); err != nil {
			return err
		}
		a.mu.Lock()
		a.all[text] = last
		a.mu.Unlock()
	}
	return log.Resign(ctx, epoch)
}

// TestFollowOverASlowConnection: a page of the usual size takes longer than a call may.
func TestFollowOverASlowConnection(t *testing.T) {
	const entries, size = 40, 64 << 10
	s := server.Start(t)
	log := join(t, open(t, "a", nil, s), "", 0)
	epoch := campaign(t, log)
	for sequence := uint64(1); sequence <= entries; sequence++ {
		if err := log.Commit(limited(t), epoch, sequence, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	p, url := startProxy(t, s, 0)
	p.setCalm()
	p.slowDown(rate.NewLimiter(8*size, size))
	slow := join(t, open(t, "b", func(o *etcd.Options) { o.Endpoints = []string{url} }), "", 0)
	complete := errors.New("complete")
	err := slow.Follow(limited(t), etcd.Position{Sequence: 0}, func(e etcd.Entry) error {
		if e.Sequence == entries {
			return complete
		}
		return nil
	})
	if !errors.Is(err, complete) {
		t.Fatal(err)
	}
}
