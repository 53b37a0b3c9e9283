package relay

import "runtime"

// turns bound how many requests and responses are worked on at the same time. However many
// clients there are, the core and the checkers' streams find a processor free soon. Who has a
// turn waits for no client and for no lock of a stream.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// take waits for a turn. The caller has to end it.
func (t turns) take() (end func()) {
	t <- struct{}{}
	return func() { <-t }
}
