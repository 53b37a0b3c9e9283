package relay

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"hdsd/peer/limit"
)

// smallWork is the size in bytes up to which a message never waits for larger messages.
const smallWork = 4 << 10

// quietWait is the time that a message may wait for its turn without an event.
const quietWait = time.Second

// turns limit the requests and responses that hdsd works on at the same time, and give each caller its
// share. So the core and the streams of checkers soon find a free processor, however many clients there
// are. hdsd's own responses have turns of their own (pushes). A goroutine that waits for a turn holds no
// lock of a stream, and one that has a turn of pushes waits for no such lock.
type turns struct {
	work   *limit.Queue // by bytes
	pushes *limit.Queue // by number
	log    zerolog.Logger
	lines  limit.Pace
}

func newTurns(log zerolog.Logger) *turns {
	places := runtime.GOMAXPROCS(0) / 2
	return &turns{work: limit.NewWork(places, smallWork), pushes: limit.NewWork(places, 0), log: log}
}

// turn waits until the stream may work on a message. The caller calls end after the work. turn fails if
// the stream ends first.
func (st *stream) turn(bytes int) (end func(), err error) {
	t, begin := st.server.turns, time.Now()
	turn, err := t.work.Work(st.lifetime(), st.caller, int64(bytes))
	if waited := time.Since(begin); waited > quietWait {
		t.warn(st.caller, waited)
	}
	if err != nil {
		return nil, err
	}
	return turn.Release, nil
}

// pushTurn waits until the stream may make a response of hdsd's own. It returns false if the stream ends
// first.
func (st *stream) pushTurn() (end func(), ok bool) {
	turn, err := st.server.turns.pushes.Work(st.lifetime(), st.caller, 1)
	if err != nil {
		return nil, false
	}
	return turn.Release, true
}

func (st *stream) lifetime() context.Context {
	return cmp.Or(st.ctx, context.Background())
}

// warn logs that a message of a caller has waited.
func (t *turns) warn(caller string, waited time.Duration) {
	t.lines.Warn(time.Now(), &t.log, "relay_caller_waits").Str("caller", limit.Name(caller)).Dur("waited", waited).
		Msg("messages of a client of the relay wait, since it has more of them, or larger ones, than hdsd can work at beside those of others")
}
