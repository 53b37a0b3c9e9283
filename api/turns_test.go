package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestWhoWaitsForItsClientLosesItsTurn, so that the others go on.
func TestWhoWaitsForItsClientLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 1)
		stuck, err := all.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				end, err := all.take(t.Context())
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
		if _, err := all.take(gone); !errors.Is(err, enough) {
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
		if len(all) != 0 {
			t.Errorf("%d turns are taken", len(all))
		}
	})
}
