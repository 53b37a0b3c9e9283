package store

import (
	"encoding/binary"
	"slices"
	"time"

	"hdsd/health"
	"hdsd/internal/packed"
)

// recordVersion is the first byte of an encoded transition. Each encoding has its own number, so
// that a file can have both.
const recordVersion = 1

// noTime marks an observation without a time, in the byte of its status.
const noTime = 0x80

// appendRecord encodes t with its time relative to base, which takes one byte if base is the
// recorded time.
func appendRecord(b []byte, base uint64, t *health.Transition) []byte {
	shown := nanos(t.Time)
	b = slices.Grow(b, roomFor(t))
	b = append(b, recordVersion, byte(t.From), byte(t.To))
	b = binary.AppendVarint(b, int64(base-shown))
	b = packed.AppendText(b, t.Endpoint.Cluster)
	b = packed.AppendText(b, t.Endpoint.Locality.Region)
	b = packed.AppendText(b, t.Endpoint.Locality.Zone)
	b = packed.AppendText(b, t.Endpoint.Locality.SubZone)
	b = packed.AppendText(b, t.Endpoint.Address)
	b = packed.AppendText(b, t.Reason)
	b = binary.AppendUvarint(b, uint64(len(t.Observations)))
	for i := range t.Observations {
		b = appendObservation(b, shown, &t.Observations[i])
	}
	return b
}

// roomFor estimates the bytes of a transition with its checksum.
func roomFor(t *health.Transition) int {
	e := &t.Endpoint
	size := 24 + len(e.Cluster) + len(e.Locality.Region) + len(e.Locality.Zone) + len(e.Locality.SubZone) + len(e.Address) + len(t.Reason)
	for i := range t.Observations {
		size += 12 + len(t.Observations[i].Checker) + len(t.Observations[i].Disbelieved)
	}
	return size
}

func appendObservation(b []byte, shown uint64, o *health.Observation) []byte {
	b = packed.AppendText(b, o.Checker)
	status := byte(o.Status) &^ noTime
	if o.Time.IsZero() {
		b = append(b, status|noTime)
	} else {
		b = binary.AppendVarint(append(b, status), int64(shown-nanos(o.Time)))
	}
	b = binary.AppendUvarint(b, uint64(o.HTTPStatusCode))
	return packed.AppendText(b, o.Disbelieved)
}

// decodeRecord reverses appendRecord, or returns false.
func decodeRecord(b []byte, base uint64, n names) (health.Transition, bool) {
	r := reader{packed.Reader{Rest: b}, n}
	t, shown := decodeHead(&r, base)
	t.Observations = decodeObservations(&r, shown)
	return t, !r.Bad && len(r.Rest) == 0
}

// decodeBrief is decodeRecord without the observations, which take most of the memory and time.
func decodeBrief(b []byte, base uint64, n names) (health.Transition, bool) {
	r := reader{packed.Reader{Rest: b}, n}
	t, _ := decodeHead(&r, base)
	for range r.Size(minObservation) {
		skipObservation(&r)
	}
	return t, !r.Bad && len(r.Rest) == 0
}

// decodeHead decodes all but the observations, whose times are relative to the shown one.
func decodeHead(r *reader, base uint64) (t health.Transition, shown uint64) {
	if r.Byte() != recordVersion {
		r.Fail()
	}
	t.From, t.To = health.Status(r.Byte()), health.Status(r.Byte())
	shown = base - uint64(r.Varint())
	t.Time = timeOf(shown)
	t.Endpoint.Cluster = r.name()
	t.Endpoint.Locality = health.Locality{Region: r.name(), Zone: r.name(), SubZone: r.name()}
	t.Endpoint.Address = r.Text()
	t.Reason = r.name()
	return t, shown
}

// step is the part of a transition that availability needs. Reading a whole transition takes
// several times as long.
type step struct {
	time     uint64
	recorded uint64 // filled in by callers that know it
	from, to health.Status
}

// openStep reads the beginning of a row of the history.
func openStep(k, v []byte) (step, bool) {
	row, ok := unseal(k, v)
	if !ok || len(k) != 8 {
		return step{}, false
	}
	r := packed.Reader{Rest: row}
	if r.Byte() != recordVersion {
		return step{}, false
	}
	s := step{from: health.Status(r.Byte()), to: health.Status(r.Byte())}
	s.time = number(k) - uint64(r.Varint())
	return s, !r.Bad
}

// minObservation is the number of bytes of the shortest observation.
const minObservation = 4

func decodeObservations(r *reader, shown uint64) []health.Observation {
	count := r.Size(minObservation)
	if count == 0 {
		return nil
	}
	decoded := make([]health.Observation, count)
	for i := range decoded {
		decoded[i] = decodeObservation(r, shown)
	}
	return decoded
}

func decodeObservation(r *reader, shown uint64) health.Observation {
	o := health.Observation{Checker: r.name()}
	status := r.Byte()
	o.Status = health.Status(status &^ noTime)
	if status&noTime == 0 {
		o.Time = timeOf(shown - uint64(r.Varint()))
	}
	o.HTTPStatusCode = decodeCode(r)
	o.Disbelieved = r.name()
	return o
}

func skipObservation(r *reader) {
	r.Bytes() // the checker
	if r.Byte()&noTime == 0 {
		r.Varint()
	}
	decodeCode(r)
	r.Bytes() // the reason why it did not count
}

func decodeCode(r *reader) uint16 {
	code := r.Uvarint()
	if code > 1<<16-1 {
		r.Fail()
	}
	return uint16(code)
}

// verdict returns the verdict after a transition.
func verdict(t *health.Transition) health.Verdict {
	return health.Verdict{Status: t.To, Since: t.Time, Reason: t.Reason, Observations: t.Observations}
}

// dated fills in the time of transitions that have none.
func dated(batch []health.Transition, now func() time.Time) []health.Transition {
	undated := func(t health.Transition) bool { return t.Time.IsZero() }
	if !slices.ContainsFunc(batch, undated) {
		return batch
	}
	batch = slices.Clone(batch)
	for i := range batch {
		if undated(batch[i]) {
			batch[i].Time = now()
		}
	}
	return batch
}
