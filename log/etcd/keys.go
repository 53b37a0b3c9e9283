package etcd

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sequenceDigits is the width of a sequence in a key. So keys have the order of their sequences.
const sequenceDigits = 20

// Bounds of a replica, in bytes. Something else may have written more.
const (
	maxID     = 1 << 10
	maxMember = 4 << 10 // of the value of its key
)

// keys makes and parses the keys below a prefix.
type keys struct{ prefix string }

func (k keys) fleet() []byte            { return []byte(k.prefix + "/fleet") }
func (k keys) leader() []byte           { return []byte(k.prefix + "/leader") }
func (k keys) replicas() []byte         { return []byte(k.prefix + "/replicas/") }
func (k keys) replica(id string) []byte { return []byte(k.prefix + "/replicas/" + id) }
func (k keys) log() []byte              { return []byte(k.prefix + "/log/") }

func (k keys) entry(sequence uint64) []byte {
	return fmt.Appendf(nil, "%s/log/%0*d", k.prefix, sequenceDigits, sequence)
}

// sequence returns the sequence in the key of an entry.
func (k keys) sequence(key []byte) (uint64, error) {
	digits, ok := strings.CutPrefix(string(key), k.prefix+"/log/")
	sequence, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || len(digits) != sequenceDigits {
		return 0, fmt.Errorf("%w: %.200q is no key of an entry", ErrDamaged, key)
	}
	return sequence, nil
}

// replicaID returns the id in the key of a replica. It is not ok for an id that no replica has.
func (k keys) replicaID(key []byte) (id string, ok bool) {
	id, ok = strings.CutPrefix(string(key), k.prefix+"/replicas/")
	return id, ok && isID(id)
}

// isID reports whether a replica may have an id.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && utf8.ValidString(id) && !strings.Contains(id, "/")
}

// end returns the first key after all keys with a prefix that ends in a slash.
func end(folder []byte) []byte {
	after := []byte(string(folder))
	after[len(after)-1]++
	return after
}

// epochBytes is the length of the epoch before the payload.
const epochBytes = 8

// encode returns the value of an entry. The value has the epoch, so that a commit recognizes its own
// entry after a lost answer.
func encode(epoch int64, payload []byte) []byte {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, epochBytes+len(payload)), uint64(epoch))
	return append(value, payload...)
}

// decode returns the entry of a key and its value.
func (k keys) decode(key, value []byte) (Entry, error) {
	sequence, err := k.sequence(key)
	if err == nil && len(value) < epochBytes {
		err = fmt.Errorf("%w: entry %d has %d bytes and no epoch", ErrDamaged, sequence, len(value))
	}
	if err != nil {
		return Entry{}, err
	}
	return Entry{sequence, int64(binary.BigEndian.Uint64(value)), value[epochBytes:]}, nil
}
