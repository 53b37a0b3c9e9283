package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// The buckets. doc.go describes them.
var (
	header      = []byte("header")
	transitions = []byte("transitions")
	byCluster   = []byte("by-cluster")
	byEndpoint  = []byte("by-endpoint")
	addresses   = []byte("addresses")
	current     = []byte("current")
	plan        = []byte("plan")
	clusters    = []byte("clusters")

	buckets = [][]byte{header, transitions, byCluster, byEndpoint, addresses, current, plan, clusters}
)

// formatKey is the row that identifies the file. It has the same form in all versions:
// magic, schema version (4 bytes), time of creation (8).
var formatKey = []byte("hdsd")

const magic = "hdsd history"

// migration upgrades a file from one schema version to the next.
type migration func(*bolt.Tx) error

// oldestSchema is the oldest schema version that hdsd reads.
const oldestSchema = 2

// migrations[i] upgrades version oldestSchema+i to the next. All migrations of a file run in one
// transaction.
var migrations = []migration{toSchema3}

// sumsSchema is the schema version that has sums in the index by endpoint.
const sumsSchema = 3

// toSchema3 changes nothing: rows without sums stay. An hdsd of schema 2 would take rows with
// sums for damaged.
func toSchema3(*bolt.Tx) error { return nil }

var errNoHeader = errors.New("it is not a history of hdsd")

// initialize makes an empty history of the newest version.
func initialize(tx *bolt.Tx, version uint32, now time.Time) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return putSchema(tx, version, nanos(now))
}

func putSchema(tx *bolt.Tx, version uint32, created uint64) error {
	row := binary.BigEndian.AppendUint32([]byte(magic), version)
	row = binary.BigEndian.AppendUint64(row, created)
	return tx.Bucket(header).Put(formatKey, seal(formatKey, row))
}

// schema returns the schema version and time of creation of a file.
func schema(tx *bolt.Tx) (version uint32, created uint64, err error) {
	b := tx.Bucket(header)
	if b == nil {
		return 0, 0, errNoHeader
	}
	version, created, ok := parseSchema(b.Get(formatKey))
	if !ok {
		return 0, 0, errNoHeader
	}
	return version, created, nil
}

// parseSchema reads the row that identifies the file.
func parseSchema(sealed []byte) (version uint32, created uint64, ok bool) {
	row, ok := unseal(formatKey, sealed)
	if !ok || len(row) != len(magic)+12 || string(row[:len(magic)]) != magic {
		return 0, 0, false
	}
	row = row[len(magic):]
	return binary.BigEndian.Uint32(row), binary.BigEndian.Uint64(row[4:]), true
}

// complete returns an error if a bucket is missing.
func complete(tx *bolt.Tx) error {
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("its bucket %q is missing", name)
		}
	}
	return nil
}

// unreadable returns an error that wraps ErrVersion if hdsd cannot read a schema version.
func (o *Options) unreadable(path string, version uint32) error {
	switch {
	case version > o.version():
		return fmt.Errorf("%w: %s was written by a newer hdsd (schema %d, this one knows %d): upgrade hdsd, restore a backup of the older one, "+
			"or move the file away to begin a new history", ErrVersion, path, version, o.version())
	case version < oldestSchema:
		return fmt.Errorf("%w: %s has schema %d, and this hdsd reads %d to %d: move the file away to begin a new history",
			ErrVersion, path, version, oldestSchema, o.version())
	}
	return nil
}

// migrate upgrades a file from version to the newest.
func (o *Options) migrate(tx *bolt.Tx, version uint32, created uint64) error {
	for i, step := range o.migrations[version-oldestSchema:] {
		if err := step(tx); err != nil {
			return fmt.Errorf("from schema %d: %w", int(version)+i, err)
		}
	}
	return putSchema(tx, o.version(), created)
}
