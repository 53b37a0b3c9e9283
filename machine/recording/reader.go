package recording

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"time"

	"hdsd/catalog"
	"hdsd/envoy/specifier"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/source"
)

// Reader reads a recording.
type Reader struct {
	Header
	State *log.State // restored state of the machine

	// FindSpecifier returns a specifier of the replay by its checker and serial number; nil if there is none.
	// Set it before Next.
	FindSpecifier func(checker string, serial uint64) *specifier.Specifier

	in        input
	names     []string                   // by number - 1
	sources   map[string]*source.Cluster // versions in use, by name
	rules     *catalog.Rules
	differing []string      // clusters of the current event whose checked endpoints differ from the recorded ones
	monotonic bool          // times have monotonic readings
	now       time.Time     // of the current event
	elapsed   time.Duration // from the start to now, by the monotonic clock
	wall      int64         // now by the wall clock, in nanoseconds since 1970
}

// Entry is an event of a recording.
type Entry struct {
	Time      time.Time
	Event     machine.Event // nil: the recording ends
	Reason    Reason        // of the end
	Differing []string      // clusters whose checked endpoints differ from the recorded ones
	Ended     bool          // false: hdsd ended within the event
	Effects   uint64        // number of effects
	Digest    uint32        // digest of all effects so far; 0 if the event has none
}

// NewReader reads the beginning of a recording. Monotonic readings of its times are relative to now.
func NewReader(file io.Reader, now time.Time) (*Reader, error) {
	buffered := bufio.NewReaderSize(file, 64<<10)
	line, err := buffered.ReadSlice('\n')
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
		sources: map[string]*source.Cluster{}, FindSpecifier: func(string, uint64) *specifier.Specifier { return nil },
		in: input{reader: bufio.NewReader(flate.NewReader(bufio.NewReader(&frames{file: buffered}))), base: now},
	}
	in := &r.in
	r.monotonic, r.wall = in.bool(), in.int()
	r.now = r.time()
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

// time returns the time of the current event.
func (r *Reader) time() time.Time {
	wall := time.Unix(0, r.wall).UTC()
	if !r.monotonic {
		return wall
	}
	t, ok := combine(r.in.base, r.elapsed, wall)
	if !ok {
		r.in.fail(errFormat)
	}
	return t
}

// Next reads the next event. The machine must have handled the previous one.
func (r *Reader) Next() (Entry, error) {
	in := &r.in
	k := kind(in.byte())
	if isCutOff(in.err) {
		return Entry{Reason: Killed}, nil
	}
	if k == endMark {
		reason := Reason(in.byte())
		if reason >= reasons {
			in.fail(errFormat)
		}
		return Entry{Reason: reason}, readable(in.err)
	}
	step := time.Duration(in.int())
	r.elapsed += step
	r.wall += int64(step) + in.int()
	r.now, r.differing = r.time(), nil
	e := Entry{Time: r.now, Event: r.event(k)}
	if isCutOff(in.err) {
		return Entry{Reason: Killed}, nil
	}
	e.Differing = r.differing
	switch n := in.uint(); {
	case isCutOff(in.err):
		return e, nil // the process was killed within the event
	case n > 0:
		e.Ended, e.Effects = true, n-1
	}
	if e.Effects > 0 {
		var sum [4]byte
		if _, err := io.ReadFull(in.reader, sum[:]); err != nil {
			in.fail(err)
		}
		e.Digest = binary.BigEndian.Uint32(sum[:])
	}
	return e, readable(in.err)
}

// isCutOff reports whether the end of the file is missing.
func isCutOff(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// readable returns an error that people understand.
func readable(err error) error {
	if isCutOff(err) {
		return errors.New("the file is cut off")
	}
	if _, corrupt := errors.AsType[flate.CorruptInputError](err); corrupt {
		return errFormat
	}
	return err
}

// frames reads the frames of a recording as one stream.
type frames struct {
	file   io.Reader
	rest   []byte // unread part of the current frame
	buffer []byte
}

var errDamaged = errors.New("the file is damaged: a checksum does not match")

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		var header [8]byte
		if _, err := io.ReadFull(f.file, header[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(header[:])
		if size > maxFrame {
			return 0, errDamaged
		}
		if f.buffer == nil {
			f.buffer = make([]byte, maxFrame)
		}
		payload := f.buffer[:size]
		if _, err := io.ReadFull(f.file, payload); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if crc32.Checksum(payload, castagnoli) != binary.BigEndian.Uint32(header[4:]) {
			return 0, errDamaged
		}
		f.rest = payload
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
