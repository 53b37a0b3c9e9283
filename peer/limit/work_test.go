package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"hdsd/peer/limit"
)

// stage has callers wait for one queue, in the bubble of a test, and notes in which
// order their turns come.
type stage struct {
	*limit.Queue
	mu    sync.Mutex
	order []string
	turns map[string]*limit.Turn
	all   sync.WaitGroup
}

func newStage(places int, small int64) *stage {
	return &stage{Queue: limit.NewWork(places, small), turns: map[string]*limit.Turn{}}
}

// asks has a caller wait under a name, and returns when it waits or has its turn.
func (s *stage) asks(name, caller string, cost int64) {
	s.all.Go(func() {
		turn, err := s.Work(context.Background(), caller, cost)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.order, s.turns[name] = append(s.order, name), turn
	})
	synctest.Wait()
}

// ends ends a turn, and gives the others that have begun by now.
func (s *stage) ends(name string) string {
	s.mu.Lock()
	s.order = nil
	turn := s.turns[name]
	s.mu.Unlock()
	turn.Release()
	turn.Release() // twice is as once
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.order, " ")
}

// drain ends turns until nobody is left, and gives the order in which they came.
func (s *stage) drain(name string) (order []string) {
	for name != "" {
		name = s.ends(name)
		order = append(order, name)
	}
	return order[:len(order)-1]
}

func TestWhoAsksForLittleGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1, 0)
		s.asks("first", "crowd-first", 10_000)
		for i := range 100 {
			s.asks(fmt.Sprintf("large%d", i), fmt.Sprintf("crowd-%d", i), 10_000)
		}
		s.asks("page", "person", 100)
		if got := s.Waiting().Count; got != 101 {
			t.Errorf("%d wait", got)
		}
		order := s.drain("first")
		if order[0] != "page" || order[1] != "large0" || order[100] != "large99" {
			t.Errorf("the order was %v", order)
		}
	})
}

// TestLargeWorkGetsItsTurn although ever new callers ask for little.
func TestLargeWorkGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1, 0)
		s.asks("small0", "caller-0", 100)
		s.asks("large", "large", 10_000)
		turns := 0
		for running := "small0"; running != "large"; turns++ {
			if turns > 300 {
				t.Fatal("it never comes")
			}
			s.asks(fmt.Sprintf("small%d", turns+1), fmt.Sprintf("caller-%d", turns+1), 100)
			running = s.ends(running)
		}
		if turns < 100 {
			t.Errorf("it came after %d others, although it costs as much as 100", turns)
		}
		s.drain("large")
	})
}

// TestWorkersTakeTurns: whoever has many waits gets no more than who has few.
func TestWorkersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1, 0)
		s.asks("first", "other", 10)
		for i := range 20 {
			s.asks(fmt.Sprintf("greedy%d", i), "greedy", 10)
		}
		for i := range 3 {
			s.asks(fmt.Sprintf("modest%d", i), "modest", 10)
		}
		order := s.drain("first")
		if last := slices.Index(order, "modest2"); last > 6 {
			t.Errorf("the order was %v", order)
		}
	})
}

func TestSmallWorkHasAPlaceOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(2, 100)
		s.asks("a", "a", 5000)
		s.asks("b", "b", 5000)
		s.asks("c", "c", 5000) // waits
		s.asks("d", "d", 101)  // waits: it is not small
		s.asks("e", "e", 100)
		s.asks("f", "f", 100) // waits: the place is taken
		if got := strings.Join(s.order, ""); got != "abe" || s.Waiting().Count != 3 {
			t.Fatalf("%s have a turn, %d wait", got, s.Waiting().Count)
		}
		for _, step := range [][2]string{{"e", "f"}, {"f", ""}, {"a", "d"}, {"b", "c"}, {"c", ""}, {"d", ""}} {
			if got := s.ends(step[0]); got != step[1] {
				t.Errorf("after %s came %q, want %q", step[0], got, step[1])
			}
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(1, 0)
		s.asks("a", "a", 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		s.all.Go(func() {
			if _, err := s.Work(ctx, "b", 1); !errors.Is(err, enough) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		s.asks("c", "c", 1)
		cancel(enough)
		s.all.Go(func() { // may get a turn or an error, but must not keep a place
			if turn, err := s.Work(ctx, "d", 1); err == nil {
				turn.Release()
			}
		})
		synctest.Wait()
		if got := s.ends("a"); got != "c" || s.Waiting().Count != 0 {
			t.Errorf("then came %q, %d wait", got, s.Waiting().Count)
		}
		s.ends("c")
	})
}

// TestNoMoreWorkThanPlaces has many goroutines wait, give up and work.
func TestNoMoreWorkThanPlaces(t *testing.T) {
	q := limit.NewWork(3, 10)
	var working, most, small atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(3) == 0 {
					go cancel()
				}
				cost := int64(random.IntN(20) + 1)
				turn, err := q.Work(ctx, fmt.Sprint(i%5), cost)
				if err == nil {
					now := working.Add(1)
					for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
					}
					if cost <= 10 {
						small.Add(1)
					}
					working.Add(-1)
					turn.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > 4 || small.Load() == 0 || q.Waiting().Count != 0 {
		t.Errorf("%d at a time, %d wait", most.Load(), q.Waiting().Count)
	}
	for range 4 { // nothing leaked
		if _, err := q.Work(t.Context(), "last", 1); err != nil {
			t.Fatal(err)
		}
	}
}
