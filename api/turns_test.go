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
)

// TestWhoWaitsForItsClientLosesItsTurn, so that the others go on.
func TestWhoWaitsForItsClientLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 1)
		stuck := all.newTurn()
		if err := stuck.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				one := all.newTurn()
				if err := one.take(t.Context()); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprint(i))
				mu.Unlock()
				one.end()
			})
			synctest.Wait()
		}
		gone, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if err := all.newTurn().take(gone); !errors.Is(err, enough) {
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
		stuck.end() // too late, but harmless
		if len(all) != 0 {
			t.Errorf("%d turns are taken", len(all))
		}
	})
}

// TestATurnIsTakenAgain: the end of one turn, early or late, does not end the next.
func TestATurnIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 1)
		one := all.newTurn()
		for _, length := range []time.Duration{0, longestTurn / 2, 2 * longestTurn, longestTurn - 1, longestTurn} {
			if err := one.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			one.over() // as by a timer that fired for the one before
			if len(all) != 1 {
				t.Errorf("a turn ended as it began")
			}
			time.Sleep(length)
			synctest.Wait()
			if over := len(all) == 0; over != (length >= longestTurn) {
				t.Errorf("after %v, it is over: %v", length, over)
			}
			one.end()
			if len(all) != 0 {
				t.Errorf("a turn of %v has not ended", length)
			}
		}
	})
}
