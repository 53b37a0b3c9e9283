package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/peer/limit"
)

// line records who is served.
type line struct {
	*limit.Queue
	served []string
	turns  map[string]*limit.Turn
}

func newLine(total int64) *line {
	return &line{Queue: limit.NewQueue(total), turns: make(map[string]*limit.Turn)}
}

// ask asks under a name that begins with the caller's.
func (l *line) ask(name string, amount int64) {
	t, free := l.Ask(name[:1], amount, func(*limit.Turn) { l.served = append(l.served, name) })
	if l.turns[name] = t; free {
		l.served = append(l.served, name)
	}
}

func (l *line) is(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.served, want) {
		t.Errorf("served %v, want %v", l.served, want)
	}
}

// TestCallersTakeTurns: one that asks for a hundred does not keep the others waiting, and a
// large amount is not passed over for small ones.
func TestCallersTakeTurns(t *testing.T) {
	l := newLine(10)
	l.ask("a0", 10)
	for i := range 100 {
		l.ask(fmt.Sprint("a", i+1), 5)
	}
	l.ask("b1", 8)
	l.ask("c1", 1)
	l.is(t, "a0")
	l.turns["a0"].Release()
	l.is(t, "a0", "a1") // the next one needs 8
	l.turns["a1"].Release()
	l.is(t, "a0", "a1", "b1", "c1")
	l.turns["b1"].Release()
	l.is(t, "a0", "a1", "b1", "c1", "a2")
	l.turns["c1"].Release()
	l.turns["c1"].Release() // twice is as once
	l.is(t, "a0", "a1", "b1", "c1", "a2", "a3")
	if taken := l.Taken(); taken != 10 {
		t.Errorf("%d are taken", taken)
	}
}

// TestALargeAmountIsNotPassedOver for small ones of ever new callers.
func TestALargeAmountIsNotPassedOver(t *testing.T) {
	q := limit.NewQueue(10)
	held, granted := []*limit.Turn{}, false
	ask := func(caller int) {
		turn, _ := q.Ask(fmt.Sprint(caller), 1, func(turn *limit.Turn) { held = append(held, turn) })
		if q.Waiting().Count == 0 {
			held = append(held, turn)
		}
	}
	for caller := range 10 {
		ask(caller)
	}
	if _, free := q.Ask("large", 10, func(*limit.Turn) { granted = true }); free {
		t.Fatal("it has what others have")
	}
	for caller := range 10 {
		ask(10 + caller)
		held[0].Release()
		held = held[1:]
	}
	if !granted || len(held) != 0 {
		t.Errorf("granted: %t, %d others have a turn", granted, len(held))
	}
}

func TestWhoEndsItsTurnLetsOthersOn(t *testing.T) {
	l := newLine(10)
	l.ask("a1", 6)
	l.ask("b1", 100) // all that there is
	l.ask("c1", 4)
	l.is(t, "a1")
	l.turns["b1"].Release()
	l.is(t, "a1", "c1")
	l.ask("d1", 100)
	l.turns["a1"].Release()
	l.is(t, "a1", "c1")
	l.turns["c1"].Release()
	l.is(t, "a1", "c1", "d1")
	l.turns["d1"].Release()
	if taken, waiting := l.Taken(), l.Waiting(); taken != 0 || waiting != (limit.Waiting{}) {
		t.Errorf("%d are taken, %+v wait", taken, waiting)
	}
	(*limit.Turn)(nil).Release()
}

func TestWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := limit.NewQueue(10)
		first, err := q.Wait(t.Context(), "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := q.Wait(ctx, "b", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		time.Sleep(time.Second)
		all.Go(func() {
			turn, err := q.Wait(t.Context(), "c", 1)
			if err != nil {
				t.Error(err)
			}
			turn.Release()
		})
		synctest.Wait()
		if got := q.Waiting(); got != (limit.Waiting{Count: 2, Caller: "b", Since: start}) {
			t.Errorf("%+v wait", got)
		}
		time.Sleep(time.Minute)
		if got := q.Waiting(); got != (limit.Waiting{Count: 1, Caller: "c", Since: start.Add(time.Second)}) {
			t.Errorf("%+v wait", got)
		}
		first.Release()
		all.Wait()
	})
}

// TestQueueAgainstAModel does many random things: no more is taken than there is, and whoever
// waits is the next in turn only while too little is free.
func TestQueueAgainstAModel(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		q, live := limit.NewQueue(50), map[*limit.Turn]int64{}
		holds := map[*limit.Turn]bool{}
		asked, served := 0, 0
		for range 2000 {
			if random.IntN(2) == 0 {
				amount := 1 + random.Int64N(60)
				turn, ok := q.Ask(fmt.Sprint(random.IntN(6)), amount, func(turn *limit.Turn) { holds[turn] = true; served++ })
				asked++
				if live[turn] = min(amount, 50); ok {
					holds[turn] = true
					served++
				}
			} else {
				for turn := range live {
					if !holds[turn] {
						served++ // it gave up
					}
					delete(live, turn)
					turn.Release()
					delete(holds, turn)
					break
				}
			}
			sum, least := int64(0), int64(100)
			for turn, amount := range live {
				if holds[turn] {
					sum += amount
				} else {
					least = min(least, amount)
				}
			}
			if taken := q.Taken(); taken != sum || sum > 50 || sum == 0 && least < 100 {
				t.Fatalf("seed %d: %d are taken, the turns have %d, somebody waits for %d", seed, taken, sum, least)
			}
			if q.Waiting().Count != asked-served {
				t.Fatalf("seed %d: %+v wait of %d, of which %d are served", seed, q.Waiting(), asked, served)
			}
		}
		for turn := range live {
			turn.Release()
		}
		if q.Taken() != 0 || q.Waiting().Count != 0 {
			t.Fatalf("seed %d: %d are left, %+v wait", seed, q.Taken(), q.Waiting())
		}
	}
}

// TestLargeAmountsKeepNoSmallOnesWaiting, nor the other way round.
func TestLargeAmountsKeepNoSmallOnesWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limit.NewRoom(160)
		start := time.Now()
		take := func(amount int64, want bool) *limit.Turn {
			t.Helper()
			turn, free := r.Ask("a", amount, func(*limit.Turn) {})
			if free != want {
				t.Errorf("%d are there: %t", amount, free)
			}
			return turn
		}
		large := take(100, true) // as much as large ones have
		time.Sleep(time.Second)
		take(11, false)
		for range 8 {
			take(10, true)
		}
		if taken := r.Taken(); taken != 160 {
			t.Errorf("%d are taken", taken)
		}
		time.Sleep(time.Second)
		small := take(10, false)
		if got := r.Waiting(); got != (limit.Waiting{Count: 2, Caller: "a", Since: start.Add(time.Second)}) {
			t.Errorf("%+v wait", got)
		}
		large.Release()
		if got := r.Waiting(); got != (limit.Waiting{Count: 1, Caller: "a", Since: start.Add(2 * time.Second)}) {
			t.Errorf("%+v wait", got)
		}
		small.Release()
		if got := r.Waiting(); got != (limit.Waiting{}) || r.Taken() != 91 {
			t.Errorf("%+v wait, %d are taken", got, r.Taken())
		}
	})
}

// BenchmarkQueue is what a turn costs while a thousand callers wait.
func BenchmarkQueue(b *testing.B) {
	q := limit.NewQueue(1)
	var before *limit.Turn
	before, _ = q.Ask("first", 1, nil)
	var turns []*limit.Turn
	for i := range 1000 {
		t, _ := q.Ask(fmt.Sprint(i), 1, func(*limit.Turn) {})
		turns = append(turns, t)
	}
	for i := 0; b.Loop(); i++ {
		before.Release()
		before = turns[i%1000]
		turns[i%1000], _ = q.Ask(fmt.Sprint(i%1000), 1, func(*limit.Turn) {})
	}
}
