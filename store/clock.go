package store

import (
	"encoding/binary"
	"math"

	bolt "go.etcd.io/bbolt"
)

// tolerance is how far recorded time may run ahead of a transition's own time
// without being noted: transitions of one moment get one nanosecond each.
const tolerance = 10_000_000

var clockKey = []byte("clock")

// clock says where recorded time ran ahead of the transitions' own time,
// because the wall clock had jumped back: from, until, and by how much at
// most. Queries by time look there too.
type clock struct{ from, until, most uint64 }

// note takes note of a transition.
func (c *clock) note(recorded, shown uint64) {
	if recorded-shown <= tolerance {
		return
	}
	if c.most == 0 {
		c.from = recorded
	}
	c.until = recorded
	c.most = max(c.most, recorded-shown)
}

// cover takes note of transitions that turned out to be dated ahead.
func (c *clock) cover(from, to, ahead uint64) {
	if c.most == 0 {
		c.from = from
	}
	c.from, c.until, c.most = min(c.from, from), max(c.until, to), max(c.most, ahead)
}

func readClock(tx *bolt.Tx) clock {
	sealed := tx.Bucket(header).Get(clockKey)
	if sealed == nil {
		return clock{}
	}
	row, ok := unseal(clockKey, sealed)
	if !ok || len(row) != 24 {
		return clock{until: math.MaxUint64, most: math.MaxUint64} // slow, but finds all
	}
	return clock{number(row), number(row[8:]), number(row[16:])}
}

func (c clock) put(tx *bolt.Tx) error {
	return tx.Bucket(header).Put(clockKey, seal(clockKey, key(c.from, c.until, c.most)))
}

// number reads one of the numbers that key puts together.
func number(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// interval is a range of recorded times; to is not in it.
type interval struct{ from, to uint64 }

// intervals gives where to find the transitions of these times, in order.
func (c clock) intervals(start, end uint64) []interval {
	near := interval{start, add(end, tolerance)}
	far := interval{max(near.to, c.from), min(add(c.until, 1), add(end, c.most))}
	if c.most == 0 || far.from >= far.to {
		return []interval{near}
	}
	return []interval{near, far}
}
