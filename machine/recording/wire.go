package recording

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
)

// maxText limits a text or message of a recording, in bytes.
const maxText = 64 << 20

// maxItems limits the items of a list.
const maxItems = 1 << 24

// output encodes values.
type output struct {
	bytes []byte
	base  time.Time // monotonic readings are relative to it
}

func (o *output) uint(v uint64)   { o.bytes = binary.AppendUvarint(o.bytes, v) }
func (o *output) int(v int64)     { o.bytes = binary.AppendVarint(o.bytes, v) }
func (o *output) byte(b byte)     { o.bytes = append(o.bytes, b) }
func (o *output) float(v float64) { o.fixed(math.Float64bits(v)) }
func (o *output) fixed(v uint64)  { o.bytes = binary.BigEndian.AppendUint64(o.bytes, v) }

func (o *output) bool(b bool) {
	if b {
		o.byte(1)
	} else {
		o.byte(0)
	}
}

func (o *output) text(s string) {
	o.uint(uint64(len(s)))
	o.bytes = append(o.bytes, s...)
}

func (o *output) texts(texts []string) {
	o.uint(uint64(len(texts)))
	for _, s := range texts {
		o.text(s)
	}
}

// message encodes a message, or nil.
func (o *output) message(m proto.Message) {
	if !m.ProtoReflect().IsValid() {
		o.byte(0)
		return
	}
	o.byte(1)
	wire, _ := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m) // a message that cannot be encoded becomes empty
	o.text(string(wire))
}

// These are the forms of a time.
const (
	noReading byte = iota
	wallReading
	bothReadings // also the monotonic reading
)

// time encodes a time with its readings.
func (o *output) time(t time.Time) {
	if t.IsZero() {
		o.byte(noReading)
		return
	}
	if isMonotonic(t) {
		o.byte(bothReadings)
		o.int(int64(t.Sub(o.base)))
	} else {
		o.byte(wallReading)
	}
	o.int(t.Unix())
	o.uint(uint64(t.Nanosecond()))
}

// errFormat reports bytes that no output of this version writes.
var errFormat = errors.New("it is damaged, or was written by another version of hdsd")

// input decodes the values of an output. After an error, it returns zero values.
type input struct {
	reader *bufio.Reader
	base   time.Time // monotonic readings are relative to it
	err    error
}

// fail sets the error, unless there is one.
func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) uint() uint64 {
	if in.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(in.reader)
	if err != nil {
		in.fail(err)
		return 0
	}
	return v
}

func (in *input) int() int64 {
	if in.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(in.reader)
	if err != nil {
		in.fail(err)
		return 0
	}
	return v
}

func (in *input) byte() byte {
	if in.err != nil {
		return 0
	}
	b, err := in.reader.ReadByte()
	if err != nil {
		in.fail(err)
		return 0
	}
	return b
}

func (in *input) bool() bool { return in.byte() == 1 }

func (in *input) fixed() uint64 {
	var b [8]byte
	if in.err == nil {
		_, err := io.ReadFull(in.reader, b[:])
		in.fail(err)
	}
	if in.err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(b[:])
}

func (in *input) float() float64 { return math.Float64frombits(in.fixed()) }

// size decodes the number of items of a list.
func (in *input) size(limit uint64) int {
	n := in.uint()
	if n > limit {
		in.fail(errFormat)
		return 0
	}
	return int(n)
}

// each calls read once for each item of a list.
func (in *input) each(read func()) {
	for n := in.size(maxItems); n > 0 && in.err == nil; n-- {
		read()
	}
}

// text decodes a text. It allocates in parts, so a wrong size costs no memory.
func (in *input) text() string {
	var text []byte
	for rest := in.size(maxText); rest > 0 && in.err == nil; {
		part := min(rest, 64<<10)
		begin := len(text)
		text = append(text, make([]byte, part)...)
		_, err := io.ReadFull(in.reader, text[begin:])
		in.fail(err)
		rest -= part
	}
	if in.err != nil {
		return ""
	}
	return string(text)
}

func (in *input) texts() (texts []string) {
	in.each(func() { texts = append(texts, in.text()) })
	return texts
}

// message decodes a message. It reports false for nil.
func (in *input) message(m proto.Message) bool {
	if !in.bool() {
		return false
	}
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(in.text()), m); err != nil {
		in.fail(fmt.Errorf("%w: %w", errFormat, err))
	}
	return in.err == nil
}

// time decodes a time with its readings.
func (in *input) time() time.Time {
	form, elapsed := in.byte(), time.Duration(0)
	switch form {
	case noReading:
		return time.Time{}
	case bothReadings:
		elapsed = time.Duration(in.int())
	case wallReading:
	default:
		in.fail(errFormat)
	}
	seconds, nanos := in.int(), in.uint()
	if nanos > 999_999_999 {
		in.fail(errFormat)
	}
	if in.err != nil {
		return time.Time{}
	}
	wall := time.Unix(seconds, int64(nanos)).UTC()
	if form == wallReading {
		return wall
	}
	t, ok := combine(in.base, elapsed, wall)
	if !ok {
		in.fail(fmt.Errorf("%w: a time is out of range", errFormat))
	}
	return t
}
