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
	"hdsd/log"
	"hdsd/machine"
	"hdsd/source"
)

// version is the version of the format. A Reader reads this version only.
const version = 1

// magic begins the first line of a recording. The version follows.
const magic = "hdsd recording "

// Header describes the origin of a recording.
type Header struct {
	Version  string // of hdsd
	Platform string // such as linux/amd64; floating-point results may differ on another platform
	Node     string // node id of the coordinator
	Start    time.Time
	Timing   machine.Timing
}

// Reason is the reason of the end of a recording.
type Reason byte

// These are the reasons.
const (
	Killed   Reason = iota // the recording has no mark at its end
	Stopped                // hdsd stopped
	Full                   // the file has its maximum size
	Behind                 // the disk is slower than the events
	Panicked               // hdsd panicked in the last event
	reasons
)

// String returns the reason for people.
func (r Reason) String() string {
	return [...]string{
		"the process was killed, or is still running", "hdsd stopped", "the recording reached recording.max_bytes",
		"events came faster than they could be written", "hdsd ended within the last event",
	}[r]
}

// Writer encodes clusters, and compresses a recording. It is unusable after an error.
type Writer struct {
	file       io.Writer
	written    int64
	hider      *hider
	out        output
	compressed bytes.Buffer
	flate      *flate.Writer
	sources    map[string]*source.Cluster // versions in use, by name
	rules      *catalog.Rules
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// New begins a recording with the restored state of a machine. The Encoder passes pieces to send, and the
// owner passes them on to the Writer. The function send must not wait. It returns false to end the recording.
func New(file io.Writer, h *Header, state *log.State, send func(Piece) bool) (*Encoder, *Writer, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	w := &Writer{file: file, hider: newHider(key), out: output{base: h.Start}, sources: map[string]*source.Cluster{}}
	w.flate, _ = flate.NewWriter(&w.compressed, flate.BestSpeed) // the level is valid
	e := &Encoder{
		send: send, names: map[string]uint64{}, digest: newDigest(),
		out: output{base: h.Start}, wall: h.Start.UnixNano(), flushed: h.Start,
	}
	n, err := io.WriteString(file, magic+strconv.Itoa(version)+"\n")
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
	o.state(state, w.hider, func() {
		if err == nil {
			err = w.drain()
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return e, w, w.flush()
}

// Write writes a piece. It returns the size of the recording in bytes.
func (w *Writer) Write(p Piece) (int64, error) {
	w.out.bytes = append(w.out.bytes, p.bytes...)
	if p.delivery != nil {
		if err := w.delivery(p.delivery); err != nil {
			return w.written, err
		}
	}
	return w.written, w.flush()
}

// End writes the reason of the end.
func (w *Writer) End(r Reason) error {
	w.out.byte(byte(endMark))
	w.out.byte(byte(r))
	return w.flush()
}

// drain compresses the encoded bytes and writes full frames, to bound the memory.
func (w *Writer) drain() error {
	if len(w.out.bytes) < pieceBytes {
		return nil
	}
	if err := w.compress(); err != nil {
		return err
	}
	if w.compressed.Len() < pieceBytes {
		return nil
	}
	return w.writeFrames()
}

// compress moves the encoded bytes into the compressor.
func (w *Writer) compress() error {
	_, err := w.flate.Write(w.out.bytes)
	w.out.bytes = w.out.bytes[:0]
	return err
}

// flush writes all bytes to the file in a readable form.
func (w *Writer) flush() error {
	if err := w.compress(); err != nil {
		return err
	}
	if err := w.flate.Flush(); err != nil {
		return err
	}
	return w.writeFrames()
}

// writeFrames writes the compressed bytes as frames.
func (w *Writer) writeFrames() error {
	for w.compressed.Len() > 0 {
		payload := w.compressed.Next(maxFrame)
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
		frame = binary.BigEndian.AppendUint32(frame, crc32.Checksum(payload, castagnoli))
		n, err := w.file.Write(append(frame, payload...))
		if w.written += int64(n); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}

// maxFrame limits the payload of a frame, in bytes.
const maxFrame = 1 << 20
