package eds

import (
	"hdsd/internal/fields"

	"github.com/cespare/xxhash/v2"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of LocalityLbEndpoints and UInt32Value.
const (
	localityName, localityWeight = 1, 3
	wrapped32                    = 1
)

// derived is a frame that is made of another one, and made anew when that has changed.
type derived struct {
	frame *frame // nil: not made yet
	of    *frame
}

func derivedFor(made *[2]derived, gRPC bool) *derived {
	if gRPC {
		return &made[1]
	}
	return &made[0]
}

// from returns the frame made of another one.
func (d *derived) from(f *frame, produce func() *frame) *frame {
	if d.of != f {
		d.frame, d.of = produce(), f
	}
	return d.frame
}

// complete returns an assignment as gRPC's clients take it, which is the given one if nothing is
// to be added. They refuse a locality without a name, and ignore one without a weight. So each
// locality has a name, which may be empty. If no locality has a weight, each gets one: its number
// of endpoints.
func complete(r *resource) *resource {
	message := r.frame.bytes[r.frame.value:]
	c := completion{at: r.at, start: uint32(r.frame.value)}
	if !c.needed(message) {
		return r
	}
	out := c.assignment(message)
	f := newFrame(resourcev3.EndpointType, nameOf(message), out)
	positions := c.moved
	for i := range positions {
		positions[i] += uint32(f.value)
	}
	for _, position := range positions {
		f.bytes[position] = 0
	}
	done := &resource{frame: f, base: xxhash.Sum64(f.bytes[f.value:]), at: positions, health: r.health}
	done.finish()
	return done
}

// completion adds what gRPC's clients need to an encoded assignment that is valid.
type completion struct {
	at    []uint32 // positions of the health bytes that are not passed yet
	start uint32   // the position of the message

	weights bool     // localities get weights
	moved   []uint32 // the new positions, in the new message
}

// needed tells whether there is something to add.
func (c *completion) needed(message []byte) bool {
	c.weights = true
	unnamed, localities := false, 0
	for f := range eachField(message) {
		if !f.Is(assignmentLocalities) {
			continue
		}
		named, weight, _ := describeLocality(f.Value)
		unnamed = unnamed || !named
		c.weights = c.weights && !weight
		localities++
	}
	c.weights = c.weights && localities > 0
	return c.weights || unnamed
}

func (c *completion) assignment(message []byte) []byte {
	out := make([]byte, 0, len(message)+len(message)/16)
	passed := c.start
	for f := range eachField(message) {
		passed += uint32(len(f.Raw))
		if !f.Is(assignmentLocalities) {
			out = append(out, f.Raw...)
			continue
		}
		more := c.addition(f.Value)
		out = fields.AppendHead(out, assignmentLocalities, len(f.Value)+len(more))
		value := passed - uint32(len(f.Value)) // where it begins
		for len(c.at) > 0 && c.at[0] < passed {
			c.moved = append(c.moved, c.at[0]-value+uint32(len(out)))
			c.at = c.at[1:]
		}
		out = append(append(out, f.Value...), more...)
	}
	return out
}

// addition returns the fields that a locality lacks.
func (c *completion) addition(locality []byte) (more []byte) {
	named, _, endpoints := describeLocality(locality)
	if !named {
		more = fields.AppendHead(more, localityName, 0)
	}
	if c.weights {
		// A locality without endpoints has a weight, too: without it, its priority would be missing.
		weight := protowire.AppendVarint(protowire.AppendTag(nil, wrapped32, protowire.VarintType), uint64(max(endpoints, 1)))
		more = fields.AppendBytes(more, localityWeight, weight)
	}
	return more
}

// describeLocality tells whether a LocalityLbEndpoints has a name and a weight, and how many
// endpoints it has.
func describeLocality(locality []byte) (named, weight bool, endpoints int) {
	for f := range eachField(locality) {
		switch {
		case f.Is(localityName):
			named = true
		case f.Is(localityWeight):
			weight = true
		case f.Is(localityEndpoints):
			endpoints++
		}
	}
	return named, weight, endpoints
}

// eachField visits the fields of a message that is valid.
func eachField(message []byte) func(yield func(fields.Field) bool) {
	return func(yield func(fields.Field) bool) {
		for len(message) > 0 {
			f, err := fields.Next(message)
			if err != nil || !yield(f) {
				return
			}
			message = message[len(f.Raw):]
		}
	}
}

// nameOf returns the cluster_name of an encoded assignment.
func nameOf(message []byte) (name string) {
	for f := range eachField(message) {
		if f.Is(assignmentName) {
			name = string(f.Value)
		}
	}
	return name
}
