package publish

import (
	"hdsd/envoy/fields"
	"hdsd/health"

	"google.golang.org/protobuf/encoding/protowire"
)

// Spliced is an encoded ClusterLoadAssignment in which each lb endpoint whose health hdsd sets has
// exactly one health_status, one byte long whatever its value, at first UNKNOWN. To change health is
// then to change one byte in a copy.
type Spliced struct {
	Wire []byte
	// Positions are those of the health bytes in Wire, in the order of these endpoints. Sources
	// is the source's health of each.
	Positions []int
	Sources   []health.Status

	decides func(locality, endpoint int) bool
}

// Splice returns an encoded assignment under a name. decides reports whether hdsd sets the
// health of an lb endpoint.
func Splice(wire []byte, name string, decides func(locality, endpoint int) bool) (*Spliced, error) {
	s := &Spliced{decides: decides}
	buffer := make([]byte, 0, len(wire)+len(wire)/16+len(name)+8)
	buffer = fields.AppendBytes(buffer, fields.Name, name)
	locality := 0
	var inner []byte
	for len(wire) > 0 {
		f, err := fields.Next(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.Raw):]
		switch {
		case f.Is(fields.Name):
		case f.Is(fields.AssignmentLocalities):
			first := len(s.Positions)
			if inner, err = s.locality(inner[:0], f.Value, locality); err != nil {
				return nil, err
			}
			locality++
			buffer = fields.AppendHead(buffer, fields.AssignmentLocalities, len(inner))
			for i := first; i < len(s.Positions); i++ {
				s.Positions[i] += len(buffer)
			}
			buffer = append(buffer, inner...)
		default:
			buffer = append(buffer, f.Raw...)
		}
	}
	s.Wire = buffer
	return s, nil
}

func (s *Spliced) locality(buffer, wire []byte, locality int) ([]byte, error) {
	for endpoint := 0; len(wire) > 0; {
		f, err := fields.Next(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.Raw):]
		if !f.Is(fields.LocalityEndpoints) {
			buffer = append(buffer, f.Raw...)
			continue
		}
		if s.decides(locality, endpoint) {
			if buffer, err = s.endpoint(buffer, f.Value); err != nil {
				return nil, err
			}
		} else {
			buffer = append(buffer, f.Raw...)
		}
		endpoint++
	}
	return buffer, nil
}

func (s *Spliced) endpoint(buffer, wire []byte) ([]byte, error) {
	size, rest := 2, wire // the two bytes of health_status
	reported := health.Unknown
	for len(rest) > 0 {
		f, err := fields.Next(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[len(f.Raw):]
		if f.IsNumber(fields.LbEndpointHealth) {
			reported = Status(int64(int32(f.Varint())))
		} else {
			size += len(f.Raw)
		}
	}
	s.Sources = append(s.Sources, reported)
	buffer = fields.AppendHead(buffer, fields.LocalityEndpoints, size)
	buffer = protowire.AppendTag(buffer, fields.LbEndpointHealth, protowire.VarintType)
	s.Positions = append(s.Positions, len(buffer))
	buffer = append(buffer, 0)
	for len(wire) > 0 {
		f, _ := fields.Next(wire) // was read above
		wire = wire[len(f.Raw):]
		if !f.IsNumber(fields.LbEndpointHealth) {
			buffer = append(buffer, f.Raw...)
		}
	}
	return buffer, nil
}
