package api

import (
	"runtime"
	"time"

	"hdsd/peer/limit"
)

// longestTurn bounds the turn of a watcher. Sending encoded events takes far less: a longer turn
// waits for its client, which must not delay others.
const longestTurn = 500 * time.Microsecond

// turnsEach is the number of simultaneous turns of watchers for each processor. Some wait for
// their client, so a single turn would leave the processor idle.
const turnsEach = 2

// newTurns bounds how many watchers send at the same time. However many there are, the core and
// the streams wait for a processor no longer than a few turns.
func newTurns() *limit.Queue { return limit.NewWork(turnsEach*runtime.GOMAXPROCS(0), 0) }

// turn waits for the turn of a watcher. The caller must end it. It ends by itself after
// longestTurn.
func (w *watching) turn() (end func(), err error) {
	turn, err := w.service.turns.Work(w, w.caller, 1)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(longestTurn, turn.Release)
	return func() {
		late.Stop()
		turn.Release()
	}, nil
}
