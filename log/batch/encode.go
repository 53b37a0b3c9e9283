package batch

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"hdsd/health"
	"hdsd/internal/packed"
	"hdsd/log"
)

// version is the version of the format.
const version = 1

// compressor compresses batches, on the goroutine of the caller.
var compressor, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true))

// ErrTooLarge is the error of Encode for more than a reader takes.
var ErrTooLarge = fmt.Errorf("a batch of the log takes more than %d MiB, or %d MiB of memory", MaxBytes>>20, MaxMemory>>20)

// Encode returns entries as bytes, or ErrTooLarge. Equal entries have equal bytes.
func Encode(entries []*log.Entry) ([]byte, error) { return encodeWithin(entries, MaxBytes, MaxMemory) }

func encodeWithin(entries []*log.Entry, limit int, memory int64) ([]byte, error) {
	e := encoder{ids: map[string]uint64{}}
	var body []byte
	for _, entry := range entries {
		e.base = entryTime(entry)
		if e.base != 0 {
			break
		}
	}
	for _, entry := range entries {
		e.memory += entryMemory
		for tag := range sections {
			e.bytes = e.bytes[:0]
			if sections[tag].encode(&e, entry); len(e.bytes) > 0 {
				body = binary.AppendUvarint(body, uint64(tag))
				body = append(binary.AppendUvarint(body, uint64(len(e.bytes))), e.bytes...)
			}
		}
		body = append(body, endTag)
	}
	head := binary.AppendUvarint(nil, uint64(len(e.texts)))
	e.memory += int64(len(e.texts)) * textMemory
	for _, text := range e.texts {
		head = packed.AppendText(head, text)
	}
	head = binary.AppendVarint(head, e.base)
	if len(head)+len(body) > limit || e.memory > memory {
		return nil, ErrTooLarge
	}
	return compressor.EncodeAll(append(head, body...), []byte{version}), nil
}

// entryTime returns the time of the first transition or event of an entry in Unix seconds; 0 without one.
func entryTime(e *log.Entry) int64 {
	var first time.Time
	switch {
	case len(e.Transitions) > 0:
		first = e.Transitions[0].Time
	case len(e.Events) > 0:
		first = e.Events[0].Time
	}
	if first.IsZero() {
		return 0
	}
	return first.Unix()
}

// encoder encodes sections.
type encoder struct {
	bytes  []byte // content of the section
	base   int64
	texts  []string
	ids    map[string]uint64 // indexes of texts
	memory int64             // of the decoded entries
}

func (e *encoder) uint(n uint64)      { e.bytes = binary.AppendUvarint(e.bytes, n) }
func (e *encoder) byte(b byte)        { e.bytes = append(e.bytes, b) }
func (e *encoder) fixed(n uint64)     { e.bytes = binary.BigEndian.AppendUint64(e.bytes, n) }
func (e *encoder) unique(text string) { e.bytes = packed.AppendText(e.bytes, text) }

func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

// text encodes a text that may recur.
func (e *encoder) text(s string) {
	id, known := e.ids[s]
	if !known {
		id = uint64(len(e.texts))
		e.ids[s] = id
		e.texts = append(e.texts, s)
	}
	e.uint(id)
}

// time encodes the wall clock of a time. The zero time is 0.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.uint(0)
		return
	}
	delta := t.Unix() - e.base
	e.uint(1 + uint64(delta<<1^delta>>63))
	e.uint(uint64(t.Nanosecond()))
}

func (e *encoder) names(names []string) {
	if len(names) == 0 {
		return
	}
	e.list(len(names), nameMemory)
	for _, name := range names {
		e.text(name)
	}
}

func (e *encoder) hashes(hashes []health.Hash) {
	e.list(len(hashes), hashMemory)
	for _, hash := range hashes {
		e.fixed(uint64(hash))
	}
}

func (e *encoder) locality(l *health.Locality) {
	e.text(l.Region)
	e.text(l.Zone)
	e.text(l.SubZone)
}

func (e *encoder) endpoint(k *health.Endpoint) {
	e.text(k.Cluster)
	e.locality(&k.Locality)
	e.unique(k.Address)
}

// encodeRows encodes a map of changed rows in the order of the keys. A nil row is a removal. Each value
// takes the given memory.
func encodeRows[K string | health.Hash, V any](e *encoder, rows map[K]*V, memory int, key func(K), row func(*V)) {
	if len(rows) == 0 {
		return
	}
	e.list(len(rows), rowMemory+memory)
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		key(k)
		if e.bool(rows[k] != nil); rows[k] != nil {
			row(rows[k])
		}
	}
}

func (e *encoder) hash(h health.Hash) { e.fixed(uint64(h)) }
