package hds

import (
	"bytes"
	"hash/maphash"

	"google.golang.org/grpc/mem"
)

// message is what was received last, as it came. The next one is compared with it
// while it is still in grpc's buffers. Of a large one only a hash is kept. A call of
// UnmarshalWire is followed by one of done.
type message struct {
	// current gives the plans that a report may follow; nil for a first message.
	current func() plans

	plans   plans  // those when the message came in
	bytes   []byte // the message until done; empty if it is the same as before, on the same plan
	same    bool   // it equals the one before
	refusal error  // why it was not taken; grpc would hide the error's code

	size  int        // of the message; -1 if there was none
	sum   digest     // of a large one
	small []byte     // keeps the bytes of a small one
	large mem.Buffer // holds those of a large one until done
}

// keptBytes is the size up to which a message is kept, if the checker is assigned as
// much. Up to it, two messages are compared faster than they are hashed.
const keptBytes = 1 << 20

// digest is a hash of a message by two secret seeds. Whoever sends reports does not see
// it, and could only make hdsd overlook a change in its own.
type digest [2]uint64

var seeds = [len(digest{})]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(b []byte) (d digest) {
	for i, seed := range seeds {
		d[i] = maphash.Bytes(seed, b)
	}
	return d
}

func newMessage(current func() plans) *message { return &message{current: current, size: -1} }

// UnmarshalWire implements wire.Unmarshaler.
func (m *message) UnmarshalWire(data mem.BufferSlice) error {
	before := m.plans.current()
	if m.current != nil {
		m.plans = m.current()
	}
	size := data.Len()
	if m.refusal = m.refuse(size); m.refusal != nil {
		m.same, m.bytes, m.size = false, nil, -1
		return nil
	}
	if size > min(keptBytes, m.plans.keptBytes()) {
		m.takeLarge(data, size, before)
		return nil
	}
	if m.same = size == m.size && m.small != nil && m.equal(data); !m.same {
		if cap(m.small) < size {
			m.small = make([]byte, size)
		}
		m.small = m.small[:size]
		data.CopyTo(m.small)
	}
	m.size, m.bytes, m.sum = size, m.small, digest{}
	return nil
}

// refuse gives an error if a message has too many bytes.
func (m *message) refuse(size int) error {
	if m.current == nil {
		return checkFirst(size)
	}
	return m.plans.checkBytes(size)
}

func (m *message) takeLarge(data mem.BufferSlice, size int, before *plan) {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	sum := digestOf(whole.ReadOnlyData())
	m.same = size == m.size && m.small == nil && sum == m.sum
	m.size, m.sum, m.small = size, sum, nil
	if m.same && m.plans.current() == before {
		m.bytes = nil
		whole.Free()
		return
	}
	m.large, m.bytes = whole, whole.ReadOnlyData()
}

// done ends the use of the bytes. After an error, the same message again is not the
// same: it has to be refused again.
func (m *message) done(err error) {
	if m.large != nil {
		m.large.Free()
		m.large, m.bytes = nil, nil
	}
	if err != nil {
		m.size = -1
	}
}

func (m *message) equal(data mem.BufferSlice) bool {
	offset := 0
	for _, buffer := range data {
		part := buffer.ReadOnlyData()
		if !bytes.Equal(part, m.small[offset:offset+len(part)]) {
			return false
		}
		offset += len(part)
	}
	return true
}
