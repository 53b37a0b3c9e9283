package hds

import (
	"bytes"
	"slices"
	"sync"

	"google.golang.org/grpc/mem"
)

// message is the last received message. The next one is compared with it while it is still in
// grpc's buffers, without a copy. Only small messages are kept, of others hashes: those of all
// checkers together would be several hundred bytes for each endpoint. Each UnmarshalWire is
// followed by one call of done.
type message struct {
	// current returns the plans that a report may follow; nil for a first message.
	current func() plans

	plans   plans  // plans at the arrival of the message
	bytes   []byte // the message until done; empty if it equals the one before, on the same plan
	same    bool   // it equals the one before
	refusal error  // reason why it was refused; grpc would hide the error's code

	size  int     // of the message; -1 if there was none
	sums  sums    // hashes of a large message
	small []byte  // bytes of a small message
	large *[]byte // of larges; bytes of a large message until done
}

// larges has buffers for large messages. Unlike grpc's, they are not cleared for each message.
var larges = sync.Pool{New: func() any { return new([]byte) }}

// keptBytes is the size up to which a message is kept.
const keptBytes = 4 << 10

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
		m.sums.forget()
		return nil
	}
	if size > keptBytes {
		m.takeLarge(data, size, before)
		return nil
	}
	m.sums.forget()
	if m.same = size == m.size && m.small != nil && m.equal(data); !m.same {
		if cap(m.small) < size {
			m.small = make([]byte, size)
		}
		m.small = m.small[:size]
		data.CopyTo(m.small)
	}
	m.size, m.bytes = size, m.small
	return nil
}

// refuse returns an error if a message has too many bytes.
func (m *message) refuse(size int) error {
	if m.current == nil {
		return checkFirst(size)
	}
	return m.plans.checkBytes(size)
}

func (m *message) takeLarge(data mem.BufferSlice, size int, before *plan) {
	comparable := size == m.size && m.small == nil
	m.same = m.sums.next(data, comparable)
	m.size, m.small, m.bytes = size, nil, nil
	if !m.same || m.plans.current() != before {
		m.large = larges.Get().(*[]byte)
		*m.large = slices.Grow((*m.large)[:0], size)[:size]
		data.CopyTo(*m.large)
		m.bytes = *m.large
	}
}

// readFrom records that bytes before this offset are not read, and need not be compared in the
// next message. The bytes must still be there.
func (m *message) readFrom(offset int) {
	if m.large != nil {
		m.sums.startAt(offset, m.bytes)
	}
}

// done ends the use of the bytes. After an error, an equal message is refused again.
func (m *message) done(err error) {
	if m.large != nil {
		larges.Put(m.large)
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
