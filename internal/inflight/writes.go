package inflight

// mostResets is how many streams a client may reset while one write waits for it to read. What grpc
// has to send on them stays in memory as long.
const mostResets = 200

// writes tells how far grpc is with its writes. Its owner holds conn.mu.
type writes struct {
	waits  bool     // grpc is in a write
	over   []func() // of streams that were reset since that began
	resets int      // how many
}

func (w *writes) begin() { w.waits = true }

// end returns what is to be called of the streams that were reset meanwhile.
func (w *writes) end() (over []func()) {
	over = w.over
	*w = writes{}
	return over
}

// defers keeps what a reset stream has to call until the present write is over, if there is one:
// until then grpc does not get to free what it has of the stream. It reports whether there are
// too many.
func (w *writes) defers(over *[]func()) (tooMany bool) {
	if !w.waits {
		return false
	}
	w.over, *over = append(w.over, *over...), nil
	w.resets++
	return w.resets > mostResets
}

func call(all []func()) {
	for _, f := range all {
		f()
	}
}
