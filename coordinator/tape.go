package coordinator

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/machine/recording"
	"hdsd/store"
)

// tapeSize is how many pieces of a recording may wait for the disk. They have 64 KiB each, or clusters of a
// source, which hdsd has in memory anyway.
const tapeSize = 512

// previousTape is added to the name of the recording of the process before this one.
const previousTape = ".previous"

// tape writes what the core records into a file, on a goroutine of its own. The core never waits for it: if
// too much waits, the recording ends.
type tape struct {
	log    zerolog.Logger
	path   string
	limit  int64
	file   *os.File
	writer *recording.Writer
	pieces chan recording.Piece
	over   atomic.Bool   // the file takes no more
	done   chan struct{} // closed when the file is

	// Of the core's goroutine, until pieces is closed.
	reason recording.Reason // why the recording ends
	closed bool
}

// newTape begins a recording of a machine that is about to be restored from a state. It returns nil if the
// configuration asks for none, or if the file cannot be written: that is no reason not to start.
func newTape(c *configv1.Config, h recording.Header, state *store.State, log zerolog.Logger) (*tape, *recording.Encoder) {
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

// begin opens the file, beside that of the process before, and writes the state into it.
func (t *tape) begin(h *recording.Header, state *store.State) (encoder *recording.Encoder, err error) {
	if err := os.Rename(t.path, t.path+previousTape); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if t.file, err = os.OpenFile(t.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return nil, err
	}
	if encoder, t.writer, err = recording.New(t.file, h, state, t.take); err != nil {
		t.file.Close()
	}
	return encoder, err
}

func (t *tape) failed(err error) {
	t.log.Error().Str("event", "recording_failed").Str("file", t.path).Err(err).Msg("the events of hdsd are not recorded any more")
}

// ended says that there will be no more in the file, although hdsd goes on.
func (t *tape) ended(reason recording.Reason) {
	t.log.Warn().Str("event", "recording_ended").Str("file", t.path).Str("reason", reason.String()).
		Msg("the events of hdsd are not recorded any more; a restart begins a new recording")
}

// take takes a piece, if there is room. It runs on the core's goroutine, and never waits.
func (t *tape) take(p recording.Piece) bool {
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

func (t *tape) close(why recording.Reason) {
	if !t.closed {
		t.closed, t.reason = true, why
		close(t.pieces)
	}
}

// discard closes a tape of a core that does not run. A nil tape has nothing to close.
func (t *tape) discard() {
	if t != nil {
		t.file.Close()
	}
}

// run writes pieces until the core closes the tape. A nil tape has none.
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

// end writes why the recording ends.
func (t *tape) end(why recording.Reason) {
	if err := t.writer.End(why); err != nil {
		t.failed(err)
	} else if why != recording.Stopped && why != recording.Panicked {
		t.ended(why)
	}
}

// flushTime is how long a core that ends waits for the file.
const flushTime = 5 * time.Second

// finish writes what the core has recorded, also if that panics. A nil tape does nothing.
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
	case <-time.After(flushTime): // the disk does not answer
	}
}

// record begins a recording, if the configuration asks for one.
func (c *Coordinator) record(state *store.State) {
	c.core.tape, c.core.recording = newTape(c.started, recording.Header{
		Version: c.ready.version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Node: c.started.GetNodeId(), Start: time.Now(), Timing: c.core.Timing,
	}, state, c.log)
}
