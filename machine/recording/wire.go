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

// longest is the longest text or message of a recording, in bytes.
const longest = 64 << 20

// most is the largest number of items of one list.
const most = 1 << 24

// output encodes values.
type output struct {
	bytes []byte
	base  time.Time // to which monotonic readings refer
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

func (o *output) texts(all []string) {
	o.uint(uint64(len(all)))
	for _, s := range all {
		o.text(s)
	}
}

// message encodes a message, which may be nil.
func (o *output) message(m proto.Message) {
	if !m.ProtoReflect().IsValid() {
		o.byte(0)
		return
	}
	o.byte(1)
	wire, _ := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m) // what cannot be written is empty
	o.text(string(wire))
}

// The forms of a time.
const (
	noTime byte = iota
	wallTime
	bothTimes // with a monotonic reading
)

func (o *output) time(t time.Time) {
	if t.IsZero() {
		o.byte(noTime)
		return
	}
	if isMonotonic(t) {
		o.byte(bothTimes)
		o.int(int64(t.Sub(o.base)))
	} else {
		o.byte(wallTime)
	}
	o.int(t.Unix())
	o.uint(uint64(t.Nanosecond()))
}

// errFormat says that the bytes are none that an output writes.
var errFormat = errors.New("it is damaged, or was written by another version of hdsd")

// input decodes what an output has encoded. After an error, everything is zero.
type input struct {
	from *bufio.Reader
	base time.Time
	err  error
}

// fail keeps the first error.
func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) uint() uint64 {
	if in.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(in.from)
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
	v, err := binary.ReadVarint(in.from)
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
	b, err := in.from.ReadByte()
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
		_, err := io.ReadFull(in.from, b[:])
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

// each calls read for each item of a list.
func (in *input) each(read func()) {
	for n := in.size(most); n > 0 && in.err == nil; n-- {
		read()
	}
}

// text decodes a text. It takes memory only for what is there.
func (in *input) text() string {
	var all []byte
	for rest := in.size(longest); rest > 0 && in.err == nil; {
		part := min(rest, 64<<10)
		begin := len(all)
		all = append(all, make([]byte, part)...)
		_, err := io.ReadFull(in.from, all[begin:])
		in.fail(err)
		rest -= part
	}
	if in.err != nil {
		return ""
	}
	return string(all)
}

func (in *input) texts() (all []string) {
	in.each(func() { all = append(all, in.text()) })
	return all
}

// message decodes a message. It reports false where nil was encoded.
func (in *input) message(m proto.Message) bool {
	if !in.bool() {
		return false
	}
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal([]byte(in.text()), m); err != nil {
		in.fail(fmt.Errorf("%w: %w", errFormat, err))
	}
	return in.err == nil
}

func (in *input) time() time.Time {
	form, elapsed := in.byte(), time.Duration(0)
	switch form {
	case noTime:
		return time.Time{}
	case bothTimes:
		elapsed = time.Duration(in.int())
	case wallTime:
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
	if form == wallTime {
		return wall
	}
	t, ok := withReadings(in.base, elapsed, wall)
	if !ok {
		in.fail(fmt.Errorf("%w: a time is out of range", errFormat))
	}
	return t
}
