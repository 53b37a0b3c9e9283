package eds

import (
	"hdsd/health"
	"hdsd/internal/fields"

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
		f, err := fields.Next(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.Raw):]
		switch {
		case f.Is(assignmentName):
		case f.Is(assignmentLocalities):
			first := len(s.at)
			if inner, err = s.locality(inner[:0], f.Value, locality); err != nil {
				return nil, err
			}
			locality++
			out = fields.AppendHead(out, assignmentLocalities, len(inner))
			for i := first; i < len(s.at); i++ {
				s.at[i] += len(out)
			}
			out = append(out, inner...)
		default:
			out = append(out, f.Raw...)
		}
	}
	return out, nil
}

func (s *splicer) locality(out, wire []byte, locality int) ([]byte, error) {
	for endpoint := 0; len(wire) > 0; {
		f, err := fields.Next(wire)
		if err != nil {
			return nil, err
		}
		wire = wire[len(f.Raw):]
		if !f.Is(localityEndpoints) {
			out = append(out, f.Raw...)
			continue
		}
		if s.ours(locality, endpoint) {
			if out, err = s.endpoint(out, f.Value); err != nil {
				return nil, err
			}
		} else {
			out = append(out, f.Raw...)
		}
		endpoint++
	}
	return out, nil
}

func (s *splicer) endpoint(out, wire []byte) ([]byte, error) {
	size, rest := 2, wire // the two bytes of health_status
	says := health.Unknown
	for len(rest) > 0 {
		f, err := fields.Next(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[len(f.Raw):]
		if f.IsNumber(endpointHealth) {
			says = statusOf(int64(int32(f.Varint())))
		} else {
			size += len(f.Raw)
		}
	}
	s.says = append(s.says, says)
	out = fields.AppendHead(out, localityEndpoints, size)
	out = protowire.AppendTag(out, endpointHealth, protowire.VarintType)
	s.at = append(s.at, len(out))
	out = append(out, 0)
	for len(wire) > 0 {
		f, _ := fields.Next(wire) // was read above
		wire = wire[len(f.Raw):]
		if !f.IsNumber(endpointHealth) {
			out = append(out, f.Raw...)
		}
	}
	return out, nil
}
