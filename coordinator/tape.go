package coordinator

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/log"
	"hdsd/machine/recording"
)

// tapeSize limits the pieces of a recording that wait for the disk. A piece has 64 KiB, or clusters that are in
// memory anyway.
const tapeSize = 512

// previousSuffix is the suffix of the recording of the previous process.
const previousSuffix = ".previous"

// tape writes the recording of the core into a file, on a goroutine of its own. The core never waits: if the
// queue is full, the recording ends.
type tape struct {
	log    zerolog.Logger
	path   string
	limit  int64
	file   *os.File
	writer *recording.Writer
	pieces chan recording.Piece
	over   atomic.Bool   // the file takes no more pieces
	done   chan struct{} // closed after the file

	// Owned by the goroutine of the core, until pieces is closed.
	reason recording.Reason // of the end
	closed bool
}

// newTape begins a recording of a machine before it is restored. It returns nil if the configuration asks for no
// recording. It also returns nil if the file cannot be written, since hdsd starts without a recording then.
func newTape(c *configv1.Config, h recording.Header, state *log.State, log zerolog.Logger) (*tape, *recording.Encoder) {
	t := &tape{
		log: log, path: c.GetRecording().GetFile(), limit: int64(c.GetRecording().GetMaxBytes()),
		pieces: make(chan recording.Piece, tapeSize), done: make(chan struct{}),
	}
	if t.path == "" {
		return nil, nil
	}
	encoder, err := t.begin(&h, state)
	if err != nil {
		t.failed(err)
		return nil, nil
	}
	log.Info().Str("event", "recording_started").Str("file", t.path).Int64("max_bytes", t.limit).Msg("hdsd records its events: 'hdsd replay FILE' replays them")
	return t, encoder
}

// begin opens the file, and writes the state into it. It keeps the file of the previous process.
func (t *tape) begin(h *recording.Header, state *log.State) (encoder *recording.Encoder, err error) {
	if err := os.Rename(t.path, t.path+previousSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if t.file, err = os.OpenFile(t.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return nil, err
	}
	if encoder, t.writer, err = recording.New(t.file, h, state, t.queue); err != nil {
		t.file.Close()
	}
	return encoder, err
}

// failed logs the failure of the recording.
func (t *tape) failed(err error) {
	t.log.Error().Str("event", "recording_failed").Str("file", t.path).Err(err).Msg("the events of hdsd are not recorded any more")
}

// ended logs the end of the recording before the end of hdsd.
func (t *tape) ended(reason recording.Reason) {
	t.log.Warn().Str("event", "recording_ended").Str("file", t.path).Str("reason", reason.String()).
		Msg("the events of hdsd are not recorded any more; a restart begins a new recording")
}

// queue queues a piece for the file, if there is room. It runs on the goroutine of the core, and never waits.
func (t *tape) queue(p recording.Piece) bool {
	if t.closed || t.over.Load() {
		t.close(recording.Stopped)
		return false
	}
	select {
	case t.pieces <- p:
		return true
	default:
		t.close(recording.Behind)
		return false
	}
}

// close ends the queue. It keeps the first reason.
func (t *tape) close(reason recording.Reason) {
	if !t.closed {
		t.closed, t.reason = true, reason
		close(t.pieces)
	}
}

// discard closes the file of a core that does not run. The tape may be nil.
func (t *tape) discard() {
	if t != nil {
		t.file.Close()
	}
}

// run writes pieces until the core closes the queue. The tape may be nil.
func (t *tape) run() {
	if t == nil {
		return
	}
	defer close(t.done)
	defer t.file.Close()
	for p := range t.pieces {
		if t.over.Load() {
			continue
		}
		switch n, err := t.writer.Write(p); {
		case err != nil:
			t.over.Store(true)
			t.failed(err)
		case n >= t.limit:
			t.over.Store(true)
			t.end(recording.Full)
		}
	}
	if !t.over.Load() {
		t.end(t.reason)
	}
}

// end writes the reason of the end.
func (t *tape) end(reason recording.Reason) {
	if err := t.writer.End(reason); err != nil {
		t.failed(err)
	} else if reason != recording.Stopped && reason != recording.Panicked {
		t.ended(reason)
	}
}

// flushTime is the time for which the core waits for the file at its end.
const flushTime = 5 * time.Second

// finish writes the rest of the recording, also after a panic of the core. The tape may be nil.
func (t *tape) finish(encoder *recording.Encoder) {
	if t == nil {
		return
	}
	reason := recording.Stopped
	if encoder.Flush() {
		reason = recording.Panicked
	}
	t.close(reason)
	select {
	case <-t.done:
	case <-time.After(flushTime): // the disk hangs
	}
}

// record begins a recording, if the configuration asks for one.
func (c *Coordinator) record(state *log.State) {
	c.core.tape, c.core.recording = newTape(c.started, recording.Header{
		Version: c.ready.version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Node: c.started.GetNodeId(), Start: time.Now(), Timing: c.core.Timing,
	}, state, c.log)
}
