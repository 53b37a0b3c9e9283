package limit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/reason"
	"hdsd/peer/limit"
)

func pool(total, each int64) *limit.Pool {
	return limit.NewPool(limit.Limit{Unit: "streams", Field: "limits.max_streams", Total: total, PerCallerField: "limits.max_streams_per_caller", PerCaller: each})
}

func mustTake(t *testing.T, p *limit.Pool, caller string, amount int64, end func(error)) *limit.Lease {
	t.Helper()
	l, err := p.Take(caller, amount, end)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// refused checks a refusal: its code, the field that it names, and who it was.
func refused(t *testing.T, err error, field, caller string) {
	t.Helper()
	own := (*limit.Error)(nil)
	if !errors.As(err, &own) || own.Field() != field || own.Caller != caller {
		t.Fatalf("got %v, want a refusal of %s by %s", err, caller, field)
	}
	if got := status.Convert(fmt.Errorf("wrapped: %w", err)); got.Code() != codes.ResourceExhausted || reason.Of(err) != reason.LimitReached {
		t.Errorf("got code %v", got.Code())
	}
	if text := err.Error(); !strings.Contains(text, field) || !strings.Contains(text, caller) || !strings.Contains(text, "raise") {
		t.Errorf("%q does not say who, which limit and what to do", text)
	}
}

func TestACallerHasALimit(t *testing.T) {
	p := pool(100, 10)
	a := mustTake(t, p, "a", 4, nil)
	mustTake(t, p, "a", 6, nil)
	_, err := p.Take("a", 1, nil)
	refused(t, err, "limits.max_streams_per_caller", "a")
	refused(t, a.Add(1), "limits.max_streams_per_caller", "a")
	mustTake(t, p, "b", 10, nil)
	if err := a.Add(-3); err != nil || a.Amount() != 1 {
		t.Errorf("%d left, %v", a.Amount(), err)
	}
	mustTake(t, p, "a", 3, nil)
	if got, want := p.Usage(), (limit.Usage{Taken: 20, Callers: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestALimitForAll(t *testing.T) {
	p := pool(10, 0)
	a := mustTake(t, p, "a", 10, nil)
	_, err := p.Take("b", 1, nil)
	refused(t, err, "limits.max_streams", "b")
	a.Release()
	a.Release() // twice is as once
	if err := a.Add(1); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a released lease grows: %v", err)
	}
	if got := p.Usage(); got != (limit.Usage{}) {
		t.Errorf("%+v is left", got)
	}
	mustTake(t, p, "b", 10, nil)
	(*limit.Lease)(nil).Release()
}

func TestNoLimits(t *testing.T) {
	p := limit.NewPool(limit.Limit{Unit: "streams"})
	mustTake(t, p, "a", 1<<62, nil)
	mustTake(t, p, "b", 1<<61, nil)
}

// TestWhoHasMostMakesRoom when another wants a fair share of a full pool: its newest
// leases end, and it keeps at least as much as the other has.
func TestWhoHasMostMakesRoom(t *testing.T) {
	p := pool(100, 0)
	var ended []string
	end := func(name string) func(error) {
		return func(err error) {
			refused(t, err, "limits.max_streams", "greedy")
			ended = append(ended, name)
		}
	}
	for i := range 90 {
		mustTake(t, p, "greedy", 1, end(fmt.Sprint(i)))
	}
	mustTake(t, p, "modest", 10, nil)
	for range 45 {
		mustTake(t, p, "late", 1, func(error) { t.Error("the late one was ended") })
	}
	_, err := p.Take("late", 1, nil)
	refused(t, err, "limits.max_streams", "late")
	if len(ended) != 45 || ended[0] != "89" || ended[44] != "45" {
		t.Errorf("ended %v, want 45 from the newest on", ended)
	}
	_, err = p.Take("greedy", 1, nil)
	refused(t, err, "limits.max_streams", "greedy")
	if got := p.Usage(); got.Taken != 100 || got.Callers != 3 {
		t.Errorf("%+v", got)
	}
}

// TestNobodyIsEndedForNothing: where the room would not do, or is not fair, every
// lease stays.
func TestNobodyIsEndedForNothing(t *testing.T) {
	p := pool(100, 0)
	never := func(error) { t.Error("a lease was ended") }
	for range 60 {
		mustTake(t, p, "a", 1, never)
	}
	mustTake(t, p, "b", 40, nil)
	_, err := p.Take("c", 31, nil) // a would keep 29
	refused(t, err, "limits.max_streams", "c")
	mustTake(t, pool(10, 0), "a", 10, never)
	p = pool(10, 0)
	mustTake(t, p, "a", 9, nil) // cannot be ended
	mustTake(t, p, "a", 1, never)
	_, err = p.Take("b", 2, nil)
	refused(t, err, "limits.max_streams", "b")
}

func TestALargeLeaseEndsAsAWhole(t *testing.T) {
	p := pool(100, 0)
	ended := 0
	a := mustTake(t, p, "a", 60, func(error) { ended++ })
	mustTake(t, p, "b", 40, func(error) { t.Error("the smaller one was ended") })
	mustTake(t, p, "c", 20, nil)
	if ended != 1 || a.Amount() != 0 || p.Usage() != (limit.Usage{Taken: 60, Callers: 2}) {
		t.Errorf("ended %d, has %d, %+v", ended, a.Amount(), p.Usage())
	}
	a.Release() // as its owner does when it ends
	_, err := p.Take("a", 60, nil)
	refused(t, err, "limits.max_streams", "a")
}

func TestAnEmptyLeaseGrows(t *testing.T) {
	p := pool(10, 5)
	a := mustTake(t, p, "a", 0, nil)
	if p.Usage().Callers != 1 {
		t.Error("a caller with an open lease was forgotten")
	}
	for range 3 {
		if err := a.Add(5); err != nil {
			t.Fatal(err)
		}
		refused(t, a.Add(1), "limits.max_streams_per_caller", "a")
		if err := a.Add(-7); err != nil || a.Amount() != 0 { // no more than it has
			t.Errorf("%d, %v", a.Amount(), err)
		}
	}
	a.Release()
	if got := p.Usage(); got != (limit.Usage{}) {
		t.Errorf("%+v is left", got)
	}
}

func TestRefusalsAreReported(t *testing.T) {
	var fields []string
	p := limit.NewPool(limit.Limit{Unit: "names", Field: "all", Total: 3, PerCallerField: "each", PerCaller: 2, Refused: func(e *limit.Error) {
		fields = append(fields, fmt.Sprint(e.Field(), e.Ended))
	}})
	mustTake(t, p, "a", 1, func(error) {})
	mustTake(t, p, "a", 1, func(error) {})
	_, _ = p.Take("a", 1, nil)
	mustTake(t, p, "b", 1, nil)
	mustTake(t, p, "c", 1, nil)
	_, _ = p.Take("d", 1, nil)
	if got := strings.Join(fields, " "); got != "eachfalse alltrue allfalse" {
		t.Errorf("got %s", got)
	}
}

// TestPoolAgainstAModel does many random things, and compares what is taken with
// plain sums: nothing leaks, no limit is exceeded, and a caller is refused by the
// whole only while nobody could fairly make room.
func TestPoolAgainstAModel(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := pool(50, 30)
		live := map[*limit.Lease]string{}
		for range 2000 {
			caller := fmt.Sprint(random.IntN(6))
			switch random.IntN(3) {
			case 0:
				var l *limit.Lease
				var end func(error)
				gone := false
				if random.IntN(2) == 0 {
					end = func(error) { gone = true; delete(live, l) }
				}
				l, err := p.Take(caller, int64(random.IntN(8)), end)
				if err == nil && !gone {
					live[l] = caller
				}
			case 1:
				for l := range live {
					_ = l.Add(int64(random.IntN(9) - 4))
					break
				}
			default:
				for l := range live {
					l.Release()
					delete(live, l)
					break
				}
			}
			sum, each := int64(0), map[string]int64{}
			for l, who := range live {
				sum += l.Amount()
				each[who] += l.Amount()
			}
			if got := p.Usage(); got.Taken != sum || sum > 50 {
				t.Fatalf("seed %d: %+v, the leases have %d", seed, got, sum)
			}
			for who, amount := range each {
				if amount > 30 {
					t.Fatalf("seed %d: %s has %d", seed, who, amount)
				}
			}
		}
		for l := range live {
			l.Release()
		}
		if got := p.Usage(); got != (limit.Usage{}) {
			t.Fatalf("seed %d: %+v is left", seed, got)
		}
	}
}

func TestManyGoroutines(t *testing.T) {
	p := pool(20, 0)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				var l *limit.Lease
				var mu sync.Mutex
				mu.Lock()
				l, err := p.Take(fmt.Sprint(i%4), 3, func(error) {
					mu.Lock()
					defer mu.Unlock()
					l.Release()
				})
				mu.Unlock()
				if err == nil {
					_ = l.Add(1)
					l.Release()
				}
			}
		})
	}
	all.Wait()
	if got := p.Usage(); got != (limit.Usage{}) {
		t.Errorf("%+v is left", got)
	}
}

func TestNamesAreFitToShow(t *testing.T) {
	for caller, want := range map[string]string{
		"spiffe://a/b":           `caller "spiffe://a/b"`,
		"a\x1b[31m":              `caller "a\x1b[31m"`,
		"\xff\x00":               `caller ff00`,
		strings.Repeat("x", 300): `caller "` + strings.Repeat("x", 200) + `…"`,
	} {
		if got := limit.Name(caller); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	p := pool(0, 10)
	for i := range 5000 {
		if _, err := p.Take(fmt.Sprint("other", i), int64(1+i%10), nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		l, err := p.Take("a", 1, func(error) {})
		if err != nil {
			b.Fatal(err)
		}
		l.Release()
	}
}
