package fields

import (
	"math"
	"time"
)

// AppendDuration appends an encoded google.protobuf.Duration without a tag. It must not be negative.
func AppendDuration(b []byte, d time.Duration) []byte {
	b = AppendNumber(b, DurationSeconds, uint64(d/time.Second))
	if nanos := d % time.Second; nanos > 0 {
		b = AppendNumber(b, DurationNanos, uint64(nanos))
	}
	return b
}

// Duration reads an encoded google.protobuf.Duration. It returns 0 for one that it cannot read, and the
// longest time.Duration for a longer one.
func Duration(wire []byte) time.Duration {
	var seconds, nanos int64
	if Each(wire, func(f *Field) bool {
		switch {
		case f.IsNumber(DurationSeconds):
			seconds = int64(f.Varint())
		case f.IsNumber(DurationNanos):
			nanos = int64(int32(f.Varint()))
		}
		return true
	}) != nil {
		return 0
	}
	if limit := int64(math.MaxInt64/time.Second) - 3; seconds > limit { // nanos may be two seconds more
		return math.MaxInt64
	} else if seconds < -limit {
		return math.MinInt64
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos)
}
