package relay

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
	"hdsd/publish"
)

// TestAFloodHoldsUpItsCallerAlone: while one client has more for hdsd to work at than it can,
// hdsd's own responses go out, small messages and those of others go first, and what belongs to
// streams that have ended is dropped. An event names the caller.
func TestAFloodHoldsUpItsCallerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := checkedServer(t)
		s.turns = newTurns(zerolog.New(&log))
		honest := newLessee(t, s, true)
		honest.caller = "honest"
		honest.subscribe(nil)
		honest.give("web", 0)

		life, end := context.WithCancel(t.Context())
		order := make(chan string, 400)
		work := func(caller string, life context.Context) {
			go func() {
				done, err := (&stream{server: s, caller: caller, ctx: life}).turn(100 * smallWork)
				if errors.Is(err, context.Canceled) {
					caller = "dropped"
				} else if err != nil {
					t.Error(err)
				}
				if order <- caller; done != nil {
					done()
				}
			}()
		}
		var places []func()
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			done, err := (&stream{server: s, caller: "flood"}).turn(100 * smallWork)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, done)
		}
		for range 100 {
			work("flood", nil)
			work("flood", life)
		}
		synctest.Wait()
		work("other", nil)
		synctest.Wait()

		// Both wait for no large work: this would not return.
		s.book.SetHealth([]publish.Health{{ID: 0, Status: health.Unhealthy}})
		if a := honest.read(honest.nextPush()); statusOf(a) != health.Unhealthy {
			t.Errorf("the other client is sent %v", a)
		}
		end()
		synctest.Wait()
		for range 100 {
			if got := <-order; got != "dropped" {
				t.Fatalf("before there is a place, %q has it", got)
			}
		}
		time.Sleep(2 * quietWait)
		places[0]()
		if first, second := <-order, <-order; first != "other" && second != "other" { // at least every other one
			t.Errorf("%q and %q are first", first, second)
		}
		for range 99 {
			if got := <-order; got != "flood" {
				t.Errorf("%q is last", got)
			}
		}
		for _, done := range places[1:] {
			done()
		}
		if text := log.String(); !strings.Contains(text, "relay_caller_waits") {
			t.Errorf("the log says %q", text)
		}
	})
}

// TestAPushWaitsForNoOtherStream: while hdsd works at the requests of some streams, their pushes keep
// no turn from those of others.
func TestAPushWaitsForNoOtherStream(t *testing.T) {
	t.Parallel()
	s := checkedServer(t)
	s.turns = newTurns(zerolog.Nop())
	places := max(1, runtime.GOMAXPROCS(0)/2)
	var turns []func()
	for range places {
		end, ok := (&stream{server: s, caller: "test"}).pushTurn()
		if !ok {
			t.Fatal("no turn")
		}
		turns = append(turns, end)
	}
	var pushes sync.WaitGroup
	for range places {
		busy := newLessee(t, s, true)
		busy.mu.Lock()
		defer pushes.Wait()
		defer busy.mu.Unlock()
		pushes.Go(func() {
			if _, err := busy.push(&pushRoom{st: busy.stream}); err != nil {
				t.Error(err)
			}
		})
	}
	for s.turns.pushes.Waiting().Count < places {
		runtime.Gosched()
	}
	for _, end := range turns {
		end()
	}
	honest := newLessee(t, s, true)
	honest.ctx = t.Context()
	if end, ok := honest.pushTurn(); !ok {
		t.Error("pushes of busy streams have the turns")
	} else {
		end()
	}
}
