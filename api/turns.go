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

// take waits for a turn, in the order of coming. The caller has to end it.
func (t turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(func() { <-t })
	late := time.AfterFunc(longestTurn, give)
	return func() { late.Stop(); give() }, nil
}
