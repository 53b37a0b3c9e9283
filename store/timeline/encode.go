package timeline

import "encoding/binary"

const (
	fixedSize = 48 // bytes of a timeline without strays
	straySize = 24
	skewSize  = 24
)

// Append encodes t behind b.
func (t *Timeline) Append(b []byte) []byte {
	b = appendAll(b, t.steady, t.wall, t.doubt.began, t.doubt.wall, t.doubt.after, t.pruned)
	for _, s := range t.strays {
		b = appendAll(b, s.from, s.to, uint64(s.ahead))
	}
	return b
}

// Parse decodes what Append wrote. It returns false for anything else.
func Parse(b []byte) (t Timeline, ok bool) {
	if len(b) < fixedSize || (len(b)-fixedSize)%straySize != 0 {
		return Timeline{}, false
	}
	t = Timeline{
		steady: number(b), wall: number(b[8:]), pruned: number(b[40:]),
		doubt: doubt{began: number(b[16:]), wall: number(b[24:]), after: number(b[32:])},
	}
	for rest := b[fixedSize:]; len(rest) > 0; rest = rest[straySize:] {
		t.strays = append(t.strays, stray{number(rest), number(rest[8:]), int64(number(rest[16:]))})
	}
	return t, true
}

// Append encodes s behind b.
func (s Skew) Append(b []byte) []byte { return appendAll(b, s.from, s.until, s.limit) }

// ParseSkew decodes what Append wrote, and anything else as AnySkew.
func ParseSkew(b []byte) Skew {
	if len(b) != skewSize {
		return AnySkew
	}
	return Skew{number(b), number(b[8:]), number(b[16:])}
}

func appendAll(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func number(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
