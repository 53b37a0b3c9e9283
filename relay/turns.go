package relay

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"hdsd/internal/pace"
	"hdsd/internal/queue"
	"hdsd/internal/share"
)

// smallWork is how many bytes a message may have so that it never waits for larger ones.
const smallWork = 4 << 10

// heldBack is how long a message may wait for its turn without an event.
const heldBack = time.Second

// turns bound how many requests and responses are worked on at the same time, and give each
// caller its share. However many clients there are, the core and the checkers' streams find a
// processor free soon. hdsd's own responses wait for none of these. Who waits for a turn has
// no lock of a stream.
type turns struct {
	work   *queue.Queue // by bytes
	pushes *queue.Queue // by number
	log    zerolog.Logger
	lines  pace.Pace
}

func newTurns(log zerolog.Logger) *turns {
	places := max(1, runtime.GOMAXPROCS(0)/2)
	return &turns{work: queue.New(queue.Options{Working: places, Small: smallWork}), pushes: queue.New(queue.Options{Working: places}), log: log}
}

// turn waits until the stream may work at a message. The caller has to end it. The error is that
// the stream has ended meanwhile.
func (st *stream) turn(bytes int) (end func(), err error) {
	t, begin := st.server.turns, time.Now()
	turn, err := t.work.Wait(st.lifetime(), st.caller, int64(bytes))
	if waited := time.Since(begin); waited > heldBack {
		t.tell(st.caller, waited)
	}
	if err != nil {
		return nil, err
	}
	return turn.End, nil
}

// pushTurn waits until the stream may make a response of hdsd's own; false: it has ended.
func (st *stream) pushTurn() (end func(), ok bool) {
	turn, err := st.server.turns.pushes.Wait(st.lifetime(), st.caller, 1)
	if err != nil {
		return nil, false
	}
	return turn.End, true
}

func (st *stream) lifetime() context.Context {
	return cmp.Or(st.life, context.Background())
}

// tell says that a caller's message has waited.
func (t *turns) tell(caller string, waited time.Duration) {
	if more, ok := t.lines.Next(time.Now()); ok {
		t.log.Warn().Str("event", "relay_caller_waits").Str("caller", share.Name(caller)).Dur("waited", waited).Uint64("more", more).
			Msg("messages of a client of the relay wait, since it has more of them, or larger ones, than hdsd can work at beside those of others")
	}
}
