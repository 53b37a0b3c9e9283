package recording

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/machine"
	"hdsd/source"
	"hdsd/store"
)

// Reader reads a recording.
type Reader struct {
	Header
	State *store.State // what the machine was restored from

	// Specifier finds a specifier that the replay has made, by its checker and its serial; nil: there is none.
	// Set it before Next.
	Specifier func(checker string, serial uint64) *specifier.Specifier

	in        input
	names     []string
	sources   map[string]*source.Cluster
	rules     *catalog.Rules
	differs   []string // clusters of the present event that are prepared otherwise than then
	monotonic bool
	now       time.Time
	elapsed   time.Duration
	wall      int64
}

// Entry is an event of a recording.
type Entry struct {
	Time    time.Time
	Event   machine.Event // nil: the recording ends
	Reason  Reason        // why it ends
	Differs []string      // clusters of which other endpoints are checked than then
	Ended   bool          // false: hdsd ended within the event
	Effects uint64        // how many there were
	Sum     uint32        // digest of all effects so far; 0 if the event has none
}

// NewReader reads the beginning of a recording. Now is the present time, to which monotonic readings will
// refer.
func NewReader(from io.Reader, now time.Time) (*Reader, error) {
	plain := bufio.NewReaderSize(from, 64<<10)
	line, err := plain.ReadSlice('\n')
	name, ok := strings.CutPrefix(string(line), magic)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
		return nil, err
	case !ok || err != nil:
		return nil, errors.New("this is no recording of hdsd")
	case strings.TrimSpace(name) != strconv.Itoa(version):
		return nil, fmt.Errorf("this is a recording of form %.20q, and this hdsd reads form %d: use the hdsd that wrote it", strings.TrimSpace(name), version)
	}
	r := &Reader{
		sources: map[string]*source.Cluster{}, Specifier: func(string, uint64) *specifier.Specifier { return nil },
		in: input{from: bufio.NewReader(flate.NewReader(bufio.NewReader(&frames{from: plain}))), base: now},
	}
	in := &r.in
	r.monotonic, r.wall = in.bool(), in.int()
	r.now = r.moment()
	r.Start = r.now
	r.Version, r.Platform, r.Node = in.text(), in.text(), in.text()
	for _, d := range []*time.Duration{&r.Timing.Report, &r.Timing.Grace, &r.Timing.Settle} {
		*d = time.Duration(in.int())
	}
	r.Timing.ZoneViews = in.bool()
	if r.State = in.state(); in.err != nil {
		return nil, fmt.Errorf("it ends before the first event: %w", readable(in.err))
	}
	return r, nil
}

// moment returns the present time.
func (r *Reader) moment() time.Time {
	wall := time.Unix(0, r.wall).UTC()
	if !r.monotonic {
		return wall
	}
	t, ok := withReadings(r.in.base, r.elapsed, wall)
	if !ok {
		r.in.fail(errFormat)
	}
	return t
}

// Next reads the next event. The machine must have handled the one before.
func (r *Reader) Next() (Entry, error) {
	in := &r.in
	of := kind(in.byte())
	if errors.Is(in.err, io.EOF) || errors.Is(in.err, io.ErrUnexpectedEOF) {
		return Entry{Reason: Killed}, nil
	}
	if of == ends {
		why := Reason(in.byte())
		if why >= reasons {
			in.fail(errFormat)
		}
		return Entry{Reason: why}, readable(in.err)
	}
	forward := time.Duration(in.int())
	r.elapsed += forward
	r.wall += int64(forward) + in.int()
	r.now, r.differs = r.moment(), nil
	e := Entry{Time: r.now, Event: r.event(of)}
	if slices.Contains([]error{io.EOF, io.ErrUnexpectedEOF}, in.err) {
		return Entry{Reason: Killed}, nil
	}
	e.Differs = r.differs
	switch n := in.uint(); {
	case errors.Is(in.err, io.EOF) || errors.Is(in.err, io.ErrUnexpectedEOF):
		return e, nil // the process was killed before it ended
	case n > 0:
		e.Ended, e.Effects = true, n-1
	}
	if e.Effects > 0 {
		var sum [4]byte
		if _, err := io.ReadFull(in.from, sum[:]); err != nil {
			in.fail(err)
		}
		e.Sum = binary.BigEndian.Uint32(sum[:])
	}
	return e, readable(in.err)
}

// readable says what an error means.
func readable(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut off")
	}
	if _, corrupt := errors.AsType[flate.CorruptInputError](err); corrupt {
		return errFormat
	}
	return err
}

// frames reads the frames of a recording as one stream.
type frames struct {
	from io.Reader
	rest []byte
	room []byte
}

var errDamaged = errors.New("the file is damaged: a checksum does not match")

// Read implements io.Reader.
func (f *frames) Read(to []byte) (int, error) {
	for len(f.rest) == 0 {
		var head [8]byte
		if _, err := io.ReadFull(f.from, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxFrame {
			return 0, errDamaged
		}
		if f.room == nil {
			f.room = make([]byte, maxFrame)
		}
		part := f.room[:size]
		if _, err := io.ReadFull(f.from, part); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if crc32.Checksum(part, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
			return 0, errDamaged
		}
		f.rest = part
	}
	n := copy(to, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
