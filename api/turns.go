package api

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// longestTurn is how long a watcher may keep its turn. To send what is encoded takes far
// less. So whoever takes longer waits for its client, which must not hold up others.
const longestTurn = 500 * time.Microsecond

// turnsEach is how many watchers are sent something at the same time for each processor. Some
// of them wait for their client, so that one alone would leave the processor idle.
const turnsEach = 2

// turns bound how many watchers are sent something at the same time. However many there
// are, the core and the streams wait for a processor no longer than a few of them take.
type turns chan struct{}

func newTurns() turns { return make(turns, turnsEach*runtime.GOMAXPROCS(0)) }

// turn is that of one watcher, which takes it again and again. One goroutine uses it.
type turn struct {
	of   turns
	late *time.Timer // gives it up

	mu    sync.Mutex
	has   bool
	until time.Time
}

func (t turns) newTurn() *turn {
	one := &turn{of: t}
	one.late = time.AfterFunc(time.Hour, one.over)
	one.late.Stop()
	return one
}

// take waits for the turn, in the order of coming. The caller has to end it.
func (t *turn) take(ctx context.Context) error {
	select {
	case t.of <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	t.has, t.until = true, time.Now().Add(longestTurn)
	t.mu.Unlock()
	t.late.Reset(longestTurn)
	return nil
}

// end ends the turn, unless it is over.
func (t *turn) end() {
	t.late.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give()
}

// over ends a turn that has been long enough. It may come late, when the next one has begun.
func (t *turn) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !time.Now().Before(t.until) {
		t.give()
	}
}

// give gives the turn back, if the watcher has it. The caller holds mu.
func (t *turn) give() {
	if t.has {
		t.has = false
		<-t.of
	}
}
