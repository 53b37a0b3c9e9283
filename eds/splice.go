package eds

import (
	"fmt"

	"hdsd/health"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of ClusterLoadAssignment, LocalityLbEndpoints and LbEndpoint.
const (
	assignmentName, assignmentLocalities = 1, 2
	localityEndpoints                    = 2
	endpointHealth                       = 2
)

// splicer rewrites an encoded ClusterLoadAssignment so that each lb endpoint whose health
// hdsd sets has exactly one health_status, one byte long whatever its value. To change
// health is then to change one byte in a copy.
type splicer struct {
	// ours tells whether hdsd sets the health of an lb endpoint.
	ours func(locality, endpoint int) bool
	// at lists the positions of the health bytes, in the order of these endpoints, and says
	// what the source says of each.
	at   []int
	says []health.Status
}

// assignment returns the assignment under the given name, with every health that hdsd
// sets UNKNOWN.
func (s *splicer) assignment(wire []byte, name string) ([]byte, error) {
	out := make([]byte, 0, len(wire)+len(wire)/16+len(name)+8)
	out = appendText(out, assignmentName, name)
	locality := 0
	var inner []byte
	for len(wire) > 0 {
		f, err := nextField(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.raw):]
		switch {
		case f.is(assignmentName, protowire.BytesType):
		case f.is(assignmentLocalities, protowire.BytesType):
			first := len(s.at)
			if inner, err = s.locality(inner[:0], f.value, locality); err != nil {
				return nil, err
			}
			locality++
			out = appendHead(out, assignmentLocalities, len(inner))
			for i := first; i < len(s.at); i++ {
				s.at[i] += len(out)
			}
			out = append(out, inner...)
		default:
			out = append(out, f.raw...)
		}
	}
	return out, nil
}

func (s *splicer) locality(out, wire []byte, locality int) ([]byte, error) {
	for endpoint := 0; len(wire) > 0; {
		f, err := nextField(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.raw):]
		if !f.is(localityEndpoints, protowire.BytesType) {
			out = append(out, f.raw...)
			continue
		}
		if s.ours(locality, endpoint) {
			if out, err = s.endpoint(out, f.value); err != nil {
				return nil, err
			}
		} else {
			out = append(out, f.raw...)
		}
		endpoint++
	}
	return out, nil
}

func (s *splicer) endpoint(out, wire []byte) ([]byte, error) {
	size, rest := 2, wire // the two bytes of health_status
	says := health.Unknown
	for len(rest) > 0 {
		f, err := nextField(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[len(f.raw):]
		if f.is(endpointHealth, protowire.VarintType) {
			says = statusOf(int64(int32(f.varint())))
		} else {
			size += len(f.raw)
		}
	}
	s.says = append(s.says, says)
	out = appendHead(out, localityEndpoints, size)
	out = protowire.AppendTag(out, endpointHealth, protowire.VarintType)
	s.at = append(s.at, len(out))
	out = append(out, 0)
	for len(wire) > 0 {
		f, _ := nextField(wire) // was read above
		wire = wire[len(f.raw):]
		if !f.is(endpointHealth, protowire.VarintType) {
			out = append(out, f.raw...)
		}
	}
	return out, nil
}

// field is one field of an encoded message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	raw    []byte // with its tag
	value  []byte // of a length-delimited one
}

func (f *field) is(number protowire.Number, kind protowire.Type) bool {
	return f.number == number && f.kind == kind
}

// varint returns the value of a varint.
func (f *field) varint() uint64 {
	_, _, head := protowire.ConsumeTag(f.raw)
	value, _ := protowire.ConsumeVarint(f.raw[head:])
	return value
}

func nextField(wire []byte) (field, error) {
	number, kind, head := protowire.ConsumeTag(wire)
	if head < 0 {
		return field{}, fmt.Errorf("read a tag: %w", protowire.ParseError(head))
	}
	size := protowire.ConsumeFieldValue(number, kind, wire[head:])
	if size < 0 {
		return field{}, fmt.Errorf("read field %d: %w", number, protowire.ParseError(size))
	}
	f := field{number: number, kind: kind, raw: wire[:head+size]}
	if kind == protowire.BytesType {
		f.value, _ = protowire.ConsumeBytes(wire[head:])
	}
	return f, nil
}
