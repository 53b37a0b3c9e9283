package relay

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"hdsd/peer/limit"
)

// smallWork is how many bytes a message may have so that it never waits for larger ones.
const smallWork = 4 << 10

// heldBack is how long a message may wait for its turn without an event.
const heldBack = time.Second

// turns bound how many requests and responses are worked on at the same time, and give each
// caller its share. However many clients there are, the core and the checkers' streams find a
// processor free soon. hdsd's own responses wait for none of these. Who waits for a turn has
// no lock of a stream; who has a turn to push waits for none.
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

// turn waits until the stream may work at a message. The caller has to end it. The error is that
// the stream has ended meanwhile.
func (st *stream) turn(bytes int) (end func(), err error) {
	t, begin := st.server.turns, time.Now()
	turn, err := t.work.Work(st.lifetime(), st.caller, int64(bytes))
	if waited := time.Since(begin); waited > heldBack {
		t.tell(st.caller, waited)
	}
	if err != nil {
		return nil, err
	}
	return turn.Release, nil
}

// pushTurn waits until the stream may make a response of hdsd's own; false: it has ended.
func (st *stream) pushTurn() (end func(), ok bool) {
	turn, err := st.server.turns.pushes.Work(st.lifetime(), st.caller, 1)
	if err != nil {
		return nil, false
	}
	return turn.Release, true
}

func (st *stream) lifetime() context.Context {
	return cmp.Or(st.life, context.Background())
}

// tell says that a caller's message has waited.
func (t *turns) tell(caller string, waited time.Duration) {
	t.lines.Warn(time.Now(), &t.log, "relay_caller_waits").Str("caller", limit.Name(caller)).Dur("waited", waited).
		Msg("messages of a client of the relay wait, since it has more of them, or larger ones, than hdsd can work at beside those of others")
}
