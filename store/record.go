package store

import (
	"encoding/binary"
	"slices"
	"time"

	"hdsd/health"
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
	b = appendString(b, t.Endpoint.Cluster)
	b = appendString(b, t.Endpoint.Locality.Region)
	b = appendString(b, t.Endpoint.Locality.Zone)
	b = appendString(b, t.Endpoint.Locality.SubZone)
	b = appendString(b, t.Endpoint.Address)
	b = appendString(b, t.Reason)
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
	b = appendString(b, o.Checker)
	status := byte(o.Status) &^ noTime
	if o.Time.IsZero() {
		b = append(b, status|noTime)
	} else {
		b = binary.AppendVarint(append(b, status), int64(shown-nanos(o.Time)))
	}
	b = binary.AppendUvarint(b, uint64(o.HTTPStatusCode))
	return appendString(b, o.Disbelieved)
}

// decodeRecord reverses appendRecord, or returns false.
func decodeRecord(b []byte, base uint64, n names) (health.Transition, bool) {
	r := reader{rest: b, names: n}
	t, shown := decodeHead(&r, base)
	t.Observations = decodeObservations(&r, shown)
	return t, !r.bad && len(r.rest) == 0
}

// decodeBrief is decodeRecord without the observations, which take most of the memory and time.
func decodeBrief(b []byte, base uint64, n names) (health.Transition, bool) {
	r := reader{rest: b, names: n}
	t, _ := decodeHead(&r, base)
	for range countObservations(&r) {
		skipObservation(&r)
	}
	return t, !r.bad && len(r.rest) == 0
}

// decodeHead decodes all but the observations, whose times are relative to the shown one.
func decodeHead(r *reader, base uint64) (t health.Transition, shown uint64) {
	if r.byte() != recordVersion {
		r.fail()
	}
	t.From, t.To = health.Status(r.byte()), health.Status(r.byte())
	shown = base - uint64(r.varint())
	t.Time = timeOf(shown)
	t.Endpoint.Cluster = r.name()
	t.Endpoint.Locality = health.Locality{Region: r.name(), Zone: r.name(), SubZone: r.name()}
	t.Endpoint.Address = r.string()
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
	r := reader{rest: row}
	if r.byte() != recordVersion {
		return step{}, false
	}
	s := step{from: health.Status(r.byte()), to: health.Status(r.byte())}
	s.time = number(k) - uint64(r.varint())
	return s, !r.bad
}

func countObservations(r *reader) uint64 {
	const minSize = 4 // bytes of the shortest observation
	count := r.uvarint()
	if count > uint64(len(r.rest))/minSize {
		r.fail()
	}
	if r.bad {
		return 0
	}
	return count
}

func decodeObservations(r *reader, shown uint64) []health.Observation {
	count := countObservations(r)
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
	status := r.byte()
	o.Status = health.Status(status &^ noTime)
	if status&noTime == 0 {
		o.Time = timeOf(shown - uint64(r.varint()))
	}
	o.HTTPStatusCode = decodeCode(r)
	o.Disbelieved = r.name()
	return o
}

func skipObservation(r *reader) {
	r.bytes() // the checker
	if r.byte()&noTime == 0 {
		r.varint()
	}
	decodeCode(r)
	r.bytes() // the reason why it did not count
}

func decodeCode(r *reader) uint16 {
	code := r.uvarint()
	if code > 1<<16-1 {
		r.fail()
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
