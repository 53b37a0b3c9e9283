package inflight

// mostResets bounds the streams that a client may reset while one write waits for it to read.
// grpc's data for them stays in memory as long.
const mostResets = 200

// writes records the progress of grpc's writes. Its owner holds conn.mu.
type writes struct {
	waits     bool     // grpc is in a write
	callbacks []func() // of streams that were reset during the write
	resets    int      // number of these streams
}

func (w *writes) begin() { w.waits = true }

// end returns the callbacks of the streams that were reset meanwhile.
func (w *writes) end() (callbacks []func()) {
	callbacks = w.callbacks
	*w = writes{}
	return callbacks
}

// defers keeps the callbacks of a reset stream until the present write ends, if there is one:
// until then grpc cannot free the stream's data. It reports whether there are too many.
func (w *writes) defers(callbacks *[]func()) (tooMany bool) {
	if !w.waits {
		return false
	}
	w.callbacks, *callbacks = append(w.callbacks, *callbacks...), nil
	w.resets++
	return w.resets > mostResets
}

func call(callbacks []func()) {
	for _, f := range callbacks {
		f()
	}
}
