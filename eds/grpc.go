package eds

import (
	"hdsd/envoy/fields"

	"github.com/cespare/xxhash/v2"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// derived is a frame made from another one, and remade after that has changed.
type derived struct {
	frame *frame // nil: not made yet
	base  *frame
}

func derivedFor(pair *[2]derived, gRPC bool) *derived {
	if gRPC {
		return &pair[1]
	}
	return &pair[0]
}

// derive returns the frame made from another one.
func (d *derived) derive(f *frame, produce func() *frame) *frame {
	if d.base != f {
		d.frame, d.base = produce(), f
	}
	return d.frame
}

// complete returns an assignment as gRPC's clients take it, or the given one if nothing is
// missing. They refuse a locality without a name, and ignore one without a weight. So each
// locality gets a name, which may be empty. If no locality has a weight, each gets one: its
// number of endpoints.
func complete(r *resource) *resource {
	message := r.frame.bytes[r.frame.value:]
	c := completion{offsets: r.offsets, start: uint32(r.frame.value)}
	if !c.needed(message) {
		return r
	}
	encoded := c.assignment(message)
	name, _ := fields.Text(message, fields.Name) // it is valid
	f := newFrame(resourcev3.EndpointType, name, encoded)
	positions := c.moved
	for i := range positions {
		positions[i] += uint32(f.value)
	}
	for _, position := range positions {
		f.bytes[position] = 0
	}
	done := &resource{frame: f, base: xxhash.Sum64(f.bytes[f.value:]), offsets: positions, health: r.health}
	done.finish()
	return done
}

// completion adds the parts that gRPC's clients need to a valid encoded assignment.
type completion struct {
	offsets []uint32 // positions of the remaining health bytes
	start   uint32   // position of the message

	weights bool     // localities get weights
	moved   []uint32 // the new positions, in the new message
}

// needed reports whether anything is missing.
func (c *completion) needed(message []byte) bool {
	c.weights = true
	unnamed, localities := false, 0
	for f := range fields.All(message) {
		if !f.Is(fields.AssignmentLocalities) {
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
	encoded := make([]byte, 0, len(message)+len(message)/16)
	passed := c.start
	for f := range fields.All(message) {
		passed += uint32(len(f.Raw))
		if !f.Is(fields.AssignmentLocalities) {
			encoded = append(encoded, f.Raw...)
			continue
		}
		added := c.addition(f.Value)
		encoded = fields.AppendHead(encoded, fields.AssignmentLocalities, len(f.Value)+len(added))
		value := passed - uint32(len(f.Value)) // its start
		for len(c.offsets) > 0 && c.offsets[0] < passed {
			c.moved = append(c.moved, c.offsets[0]-value+uint32(len(encoded)))
			c.offsets = c.offsets[1:]
		}
		encoded = append(append(encoded, f.Value...), added...)
	}
	return encoded
}

// addition returns the fields that a locality lacks.
func (c *completion) addition(locality []byte) (added []byte) {
	named, _, endpoints := describeLocality(locality)
	if !named {
		added = fields.AppendHead(added, fields.LocalityName, 0)
	}
	if c.weights {
		// A locality without endpoints has a weight, too: without it, its priority would be missing.
		weight := fields.AppendNumber(nil, fields.UInt32Value, uint64(max(endpoints, 1)))
		added = fields.AppendBytes(added, fields.LocalityWeight, weight)
	}
	return added
}

// describeLocality reports whether a LocalityLbEndpoints has a name and a weight, and how many
// endpoints it has.
func describeLocality(locality []byte) (named, weight bool, endpoints int) {
	for f := range fields.All(locality) {
		switch {
		case f.Is(fields.LocalityName):
			named = true
		case f.Is(fields.LocalityWeight):
			weight = true
		case f.Is(fields.LocalityEndpoints):
			endpoints++
		}
	}
	return named, weight, endpoints
}
