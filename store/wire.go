package store

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"hdsd/internal/packed"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends the checksum over key and value to value.
func seal(key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// unseal returns the value without its checksum, or false if that does not match.
func unseal(key, sealed []byte) ([]byte, bool) {
	if len(sealed) < 4 {
		return nil, false
	}
	value := sealed[:len(sealed)-4]
	return value, checksum(key, value) == binary.BigEndian.Uint32(sealed[len(value):])
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// key joins numbers.
func key(numbers ...uint64) []byte {
	k := make([]byte, 0, 24)
	for _, n := range numbers {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

// maxNanos is the last time that can be stored.
var maxNanos = time.Unix(0, math.MaxInt64)

// nanos returns nanoseconds since 1970, bounded to what can be stored.
func nanos(t time.Time) uint64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(maxNanos):
		return math.MaxInt64
	default:
		return uint64(t.UnixNano())
	}
}

func timeOf(nanos uint64) time.Time {
	return time.Unix(0, int64(min(nanos, math.MaxInt64))).UTC()
}

// number reads the first number of a key.
func number(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// names interns strings.
type names map[string]string

func (n names) intern(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(n) < 1<<16 {
		n[s] = s
	}
	return s
}

// reader decodes a value.
type reader struct {
	packed.Reader
	names names
}

// name reads a string that is likely to recur.
func (r *reader) name() string { return r.names.intern(r.Bytes()) }
