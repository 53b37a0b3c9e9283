package clusters

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"google.golang.org/protobuf/proto"

	"hdsd/source"
)

// Digest identifies the content of a cluster. Files and lines do not count.
type Digest uint64

// deterministic lets equal messages have equal digests. Two releases may differ: they send more contents.
var deterministic = proto.MarshalOptions{Deterministic: true}

// DigestOf returns the digest of a cluster.
func DigestOf(c *source.Cluster) Digest {
	d := digester{Hash: sha256.New()}
	for _, text := range []string{c.Name, c.ServiceName, c.Source, c.AssignmentSource, c.Names} {
		d.add([]byte(text))
	}
	ownChecks := slices.Equal(c.HealthChecks, c.Config.GetHealthChecks()) // the same messages
	for _, flag := range []bool{c.Lone, c.Stale, c.IgnoreNew, c.Config != nil, c.Assignment != nil, ownChecks} {
		d.addFlag(flag)
	}
	d.addMessage(c.Config)
	d.add(c.Assignment.Wire())
	if !ownChecks {
		for _, check := range c.HealthChecks {
			d.addMessage(check)
		}
	}
	return Digest(binary.LittleEndian.Uint64(d.Sum(nil)))
}

// digester hashes values with their sizes.
type digester struct {
	hash.Hash
	buffer []byte
}

func (d *digester) add(value []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(value)))
	d.Write(size[:])
	d.Write(value)
}

func (d *digester) addFlag(flag bool) {
	if flag {
		d.Write([]byte{1})
		return
	}
	d.Write([]byte{0})
}

// addMessage adds a message. A message that cannot be encoded is as an empty one: its sources refuse it.
func (d *digester) addMessage(m proto.Message) {
	d.buffer, _ = deterministic.MarshalAppend(d.buffer[:0], m)
	d.add(d.buffer)
}
