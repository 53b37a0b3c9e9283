package hds

import (
	"fmt"

	"google.golang.org/grpc/mem"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// KeptBytes is the size up to which a message is small.
const KeptBytes = keptBytes

// Introduce reads a first message.
func Introduce(message []byte) (health.Checker, error) {
	who, err := introduce(message)
	return who.checker, err
}

// FormV2 gives what of a specifier has a v2 form, and why the rest has none.
func FormV2(spec *specifier.Specifier) (fit *specifier.Specifier, leftOut map[string]error) {
	leftOut = map[string]error{}
	fit = formV2(spec, func(cluster string, err error) { leftOut[cluster] = err })
	return fit, leftOut
}

// AppendEndpoint encodes the Endpoint of an address.
func AppendEndpoint(to []byte, address string) ([]byte, string) { return appendEndpoint(to, address) }

// IsEndpoint tells whether an Endpoint is seen at once to have an address.
func IsEndpoint(encoded []byte, address string) bool { return isEndpoint(encoded, address) }

// Expected gives the entries' endpoints as reports are expected to have them.
func Expected(spec *specifier.Specifier) [][]byte {
	var all [][]byte
	for _, address := range newPlan(1, spec).addresses {
		encoded, _ := appendEndpoint(nil, address)
		all = append(all, encoded)
	}
	return all
}

// Walk reads a report the fast way; false where it leaves that to Decode.
func Walk(message []byte, spec *specifier.Specifier) (text string, ok bool) {
	p := newPlan(1, spec)
	out := make([]observed, len(p.order))
	if w := (walker{plan: p, entries: out}); !w.walk(message) {
		return "", false
	}
	return fmt.Sprint(out), true
}

// Decode reads a report the general way; false where it is not in the
// specifier's order.
func Decode(message []byte, spec *specifier.Specifier) (text string, ok bool, err error) {
	d, err := decode(message, func() bool { return false })
	if err != nil || d.request || !d.follows(newPlan(1, spec)) {
		return "", false, err
	}
	out := make([]observed, len(d.entries))
	for i := range out {
		out[i] = d.entries[i].observed
	}
	return fmt.Sprint(out), true, nil
}

// Reader reads one stream's reports.
type Reader struct {
	// Generally makes it decode all that is not as the report before.
	Generally bool

	// Stopped ends decoding.
	Stopped bool

	reader  reader
	message *message
	plans   plans
}

// Assign puts a specifier in force.
func (r *Reader) Assign(spec *specifier.Specifier) {
	seq := uint64(1)
	if current := r.plans.current(); current != nil {
		seq = current.seq + 1
	}
	r.plans = r.plans.add(newPlan(seq, spec), r.reader.matched)
}

// Read gives what a report comes to; synced tells whether the checker is known
// to follow the current specifier.
func (r *Reader) Read(b []byte) (votes []health.Vote, strange uint64, synced bool, err error) {
	if r.message == nil {
		r.message = newMessage(func() plans { return r.plans })
	}
	m := r.message
	if err := m.UnmarshalWire(mem.BufferSlice{mem.SliceBuffer(b)}); err != nil {
		return nil, 0, false, err
	}
	if m.refusal != nil {
		return nil, 0, false, m.refusal
	}
	var got reading
	current := m.plans.current()
	if r.Generally && !(m.same && current == r.reader.plan) {
		r.reader.votes, r.reader.strange = nil, 0
		r.reader.adopt(m.plans)
		m.readFrom(0)
		got, err = r.reader.general(m.bytes, r.stopped)
	} else {
		got, err = r.reader.read(m, r.stopped)
	}
	m.done(err)
	return got.votes, got.strange, current != nil && got.matched >= current.seq, err
}

func (r *Reader) stopped() bool { return r.Stopped }

// Kept is how many bytes of messages are kept between two reports.
func (r *Reader) Kept() int {
	return cap(r.message.small) + len(r.message.bytes) - len(r.message.small)
}
