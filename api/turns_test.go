package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/peer/limit"
)

// TestWhoWaitsForItsClientLosesItsTurn, so that the others go on.
func TestWhoWaitsForItsClientLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{turns: limit.NewWork(1, 0)}
		stuck, err := (&watching{Context: t.Context(), service: s}).turn()
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				end, err := (&watching{Context: t.Context(), service: s, caller: fmt.Sprint(i)}).turn()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprint(i))
				mu.Unlock()
				end()
			})
			synctest.Wait()
		}
		gone, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if _, err := (&watching{Context: gone, service: s}).turn(); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		mu.Lock()
		if len(order) > 0 {
			t.Errorf("%v had a turn while another had it", order)
		}
		mu.Unlock()
		group.Wait() // the clock goes on
		if got := strings.Join(order, ""); got != "012" {
			t.Errorf("the order was %s", got)
		}
		stuck() // too late, but harmless
		if taken := s.turns.Taken(); taken != 0 {
			t.Errorf("%d turns are taken", taken)
		}
	})
}

// TestATurnIsTakenAgain: the end of one turn, early or late, does not end the next.
func TestATurnIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{turns: limit.NewWork(1, 0)}
		w := &watching{Context: t.Context(), service: s}
		before := func() {}
		for _, length := range []time.Duration{0, longestTurn / 2, 2 * longestTurn, longestTurn - 1, longestTurn} {
			end, err := w.turn()
			if err != nil {
				t.Fatal(err)
			}
			before() // as by a timer that fired for the one before
			if s.turns.Taken() != 1 {
				t.Errorf("a turn ended as it began")
			}
			time.Sleep(length)
			synctest.Wait()
			if over := s.turns.Taken() == 0; over != (length >= longestTurn) {
				t.Errorf("after %v, it is over: %v", length, over)
			}
			end()
			if s.turns.Taken() != 0 {
				t.Errorf("a turn of %v has not ended", length)
			}
			before = end
		}
	})
}
