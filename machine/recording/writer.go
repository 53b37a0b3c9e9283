package recording

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"time"

	"hdsd/catalog"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/store"
)

// version is that of the form. A Reader reads no other.
const version = 1

// magic and the version are the first line.
const magic = "hdsd recording "

// Header says where a recording comes from.
type Header struct {
	Version  string // of hdsd
	Platform string // such as linux/amd64: floating-point numbers may differ on others
	Node     string // node id of the coordinator
	Start    time.Time
	Timing   machine.Timing
}

// Reason says why a recording ends.
type Reason byte

// The reasons.
const (
	Killed   Reason = iota // without a mark
	Stopped                // hdsd stopped
	Full                   // it is as large as it may be
	Behind                 // events came faster than they could be written
	Panicked               // hdsd ended in the last event
	reasons
)

// String says it for people.
func (r Reason) String() string {
	return [...]string{
		"the process was killed, or is still running", "hdsd stopped", "the recording reached recording.max_bytes",
		"events came faster than they could be written", "hdsd ended within the last event",
	}[r]
}

// Writer compresses a recording. After an error it must not be used.
type Writer struct {
	to      io.Writer
	written int64
	hide    *hider
	out     output
	frame   bytes.Buffer
	flate   *flate.Writer
	sources map[string]*source.Cluster // by name: the versions in use
	rules   *catalog.Rules
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// New begins a recording: it writes down where a machine begins. The Encoder hands pieces to hand, which
// must not wait: it returns false to get no more. Whoever gets them passes them to the Writer.
func New(to io.Writer, h *Header, state *store.State, hand func(Piece) bool) (*Encoder, *Writer, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	w := &Writer{to: to, hide: newHider(key), out: output{base: h.Start}, sources: map[string]*source.Cluster{}}
	w.flate, _ = flate.NewWriter(&w.frame, flate.BestSpeed) // the level is valid
	e := &Encoder{
		hand: hand, names: map[string]uint64{}, digest: newDigest(),
		out: output{base: h.Start}, wall: h.Start.UnixNano(), flushed: h.Start,
	}
	n, err := io.WriteString(to, magic+strconv.Itoa(version)+"\n")
	if w.written = int64(n); err != nil {
		return nil, nil, err
	}
	o := &w.out
	o.bool(isMonotonic(h.Start))
	o.int(h.Start.UnixNano())
	for _, text := range []string{h.Version, h.Platform, h.Node} {
		o.text(text)
	}
	for _, d := range []time.Duration{h.Timing.Report, h.Timing.Grace, h.Timing.Settle} {
		o.int(int64(d))
	}
	o.bool(h.Timing.ZoneViews)
	o.state(state, w.hide, func() {
		if err == nil {
			err = w.drain()
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return e, w, w.flush()
}

// Write writes a piece. It returns how many bytes the recording has.
func (w *Writer) Write(p Piece) (int64, error) {
	w.out.bytes = append(w.out.bytes, p.bytes...)
	if p.delivery != nil {
		if err := w.delivery(p.delivery); err != nil {
			return w.written, err
		}
	}
	return w.written, w.flush()
}

// End writes why the recording ends.
func (w *Writer) End(why Reason) error {
	w.out.byte(byte(ends))
	w.out.byte(byte(why))
	return w.flush()
}

// drain compresses what is encoded, if that is much.
func (w *Writer) drain() error {
	if len(w.out.bytes) < pieceBytes {
		return nil
	}
	if err := w.compress(); err != nil {
		return err
	}
	if w.frame.Len() < pieceBytes {
		return nil
	}
	return w.send()
}

func (w *Writer) compress() error {
	_, err := w.flate.Write(w.out.bytes)
	w.out.bytes = w.out.bytes[:0]
	return err
}

// flush writes all that there is, so that it can be read.
func (w *Writer) flush() error {
	if err := w.compress(); err != nil {
		return err
	}
	if err := w.flate.Flush(); err != nil {
		return err
	}
	return w.send()
}

// send writes frames.
func (w *Writer) send() error {
	for w.frame.Len() > 0 {
		part := w.frame.Next(maxFrame)
		head := binary.BigEndian.AppendUint32(nil, uint32(len(part)))
		head = binary.BigEndian.AppendUint32(head, crc32.Checksum(part, castagnoli))
		n, err := w.to.Write(append(head, part...))
		if w.written += int64(n); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

// maxFrame is how many bytes a frame has at most.
const maxFrame = 1 << 20
