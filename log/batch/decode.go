package batch

import (
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"hdsd/health"
	"hdsd/internal/packed"
	"hdsd/log"
)

// MaxBytes limits a batch, uncompressed. A freeze that begins to hold ten million endpoints takes 90 MB.
const MaxBytes = 256 << 20

// ErrDamaged is the error of Decode and Joiner.Add for bytes that no release writes.
var ErrDamaged = errors.New("the log is damaged here: restore etcd from a backup, or start with another prefix and the database of one replica")

// ErrNewer is the error for bytes of a later release.
var ErrNewer = errors.New("the log was written by a later release of hdsd: upgrade this replica")

var decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(MaxBytes))

// Decode returns the entries of a batch, or ErrDamaged or ErrNewer.
func Decode(b []byte) ([]*log.Entry, error) { return decodeWithin(b, MaxMemory) }

func decodeWithin(b []byte, memory int64) ([]*log.Entry, error) {
	if len(b) == 0 || b[0] == 0 {
		return nil, ErrDamaged
	}
	if b[0] > version {
		return nil, ErrNewer
	}
	content, err := decompressor.DecodeAll(b[1:], nil)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	d := decoder{Reader: packed.Reader{Rest: content}, memory: &memory}
	d.texts = make([]string, d.list(1, textMemory))
	for i := range d.texts {
		d.texts[i] = d.Text()
	}
	d.base = d.Varint()
	var entries []*log.Entry
	for len(d.Rest) > 0 && d.take(1, entryMemory) {
		entry := new(log.Entry)
		if err := d.entry(entry); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	if d.Bad {
		return nil, ErrDamaged
	}
	return entries, nil
}

// decoder decodes sections.
type decoder struct {
	packed.Reader
	base   int64
	texts  []string
	memory *int64 // that the entries may yet take
}

// entry decodes the sections of an entry, whose tags rise.
func (d *decoder) entry(entry *log.Entry) error {
	for previous := uint64(0); ; {
		tag := d.Uvarint()
		if tag == endTag {
			break
		}
		section := d.section()
		switch {
		case d.Bad || tag <= previous:
			return ErrDamaged
		case tag < uint64(len(sections)):
			if sections[tag].decode(&section, entry); section.Bad || len(section.Rest) > 0 {
				return ErrDamaged
			}
		case tag < optionalTag:
			return ErrNewer
		}
		previous = tag
	}
	if d.Bad {
		return ErrDamaged
	}
	return nil
}

// section returns a decoder of the content of the next section.
func (d *decoder) section() decoder {
	return decoder{Reader: packed.Reader{Rest: d.Bytes()}, base: d.base, texts: d.texts, memory: d.memory}
}

// text decodes a text that may recur.
func (d *decoder) text() string {
	id := d.Uvarint()
	if id >= uint64(len(d.texts)) {
		d.Fail()
		return ""
	}
	return d.texts[id]
}

func (d *decoder) bool() bool {
	b := d.Byte()
	if b > 1 {
		d.Fail()
	}
	return b == 1
}

func (d *decoder) status() health.Status {
	s := health.Status(d.Byte())
	if !s.Valid() {
		d.Fail()
		return health.Unknown
	}
	return s
}

func (d *decoder) time() time.Time {
	delta := d.Uvarint()
	if delta == 0 {
		return time.Time{}
	}
	delta--
	nanos := d.Uvarint()
	if nanos >= uint64(time.Second) {
		d.Fail()
		return time.Time{}
	}
	return time.Unix(d.base+(int64(delta>>1)^-int64(delta&1)), int64(nanos)).UTC()
}

func (d *decoder) names() []string {
	names := make([]string, d.list(1, nameMemory))
	for i := range names {
		names[i] = d.text()
	}
	return names
}

func (d *decoder) hash() health.Hash { return health.Hash(d.Uint64()) }

func (d *decoder) hashes() []health.Hash {
	hashes := make([]health.Hash, d.list(8, hashMemory))
	for i := range hashes {
		hashes[i] = d.hash()
	}
	return hashes
}

func (d *decoder) locality() health.Locality {
	return health.Locality{Region: d.text(), Zone: d.text(), SubZone: d.text()}
}

func (d *decoder) endpoint() health.Endpoint {
	return health.Endpoint{Cluster: d.text(), Locality: d.locality(), Address: d.Text()}
}

// decodeRows decodes a map of changed rows, of at least the given bytes each. Each value takes the given
// memory.
func decodeRows[K comparable, V any](d *decoder, each, memory int, key func() K, row func() V) map[K]*V {
	count := d.list(each, rowMemory+memory)
	rows := make(map[K]*V, count)
	for range count {
		k := key()
		if rows[k] = nil; d.bool() {
			v := row()
			rows[k] = &v
		}
	}
	if len(rows) < count {
		d.Fail() // a key came twice
	}
	return rows
}
