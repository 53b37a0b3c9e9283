package api

import (
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// FuzzRows: the encoder of rows writes what protojson does, and refuses what it refuses,
// whatever stands in the fields. The random messages have every field that there is, so a
// new one that the encoder does not know fails.
func FuzzRows(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, "10.0.0.1:80")
	}
	for _, odd := range []string{"\x00\x1f\x7f\"\\/\b\f\n\r\t", "<a>&'\u2028\u202e", "\xff", "ä\U0001f600", "\ufffd"} {
		f.Add(uint64(1), odd)
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		random := rand.New(rand.NewPCG(seed, 1))
		for _, m := range []proto.Message{
			&hdsdv1.ListEndpointsResponse{}, &hdsdv1.ListTransitionsResponse{}, &hdsdv1.ListAvailabilityResponse{},
			&hdsdv1.Endpoint{}, &hdsdv1.Transition{},
		} {
			fill(random, m.ProtoReflect(), text)
			want, wantErr := standardJSON(m)
			got, err := compactJSON(m)
			if string(got) != string(want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%T: got %v\n%s\nprotojson: %v\n%s", m, err, got, wantErr, want)
			}
		}
	})
}

// fill sets most fields of a message at random.
func fill(random *rand.Rand, m protoreflect.Message, text string) {
	if at, ok := m.Interface().(*timestamppb.Timestamp); ok {
		*at = timestamppb.Timestamp{Seconds: random.Int64N(1 << 35), Nanos: []int32{0, 120e6, 5e3, 7, 999_999_999}[random.IntN(5)]}
		if random.IntN(2) == 0 {
			at.Seconds = 1_700_000_000 // as the time before, often
		}
		if random.IntN(100) == 0 {
			at.Nanos = 2e9 // is no time
		}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case random.IntN(4) == 0:
		case field.IsList():
			all := m.Mutable(field).List()
			for range random.IntN(3) {
				fill(random, all.AppendMutable().Message(), text)
			}
		case field.Message() != nil:
			fill(random, m.Mutable(field).Message(), text)
		default:
			m.Set(field, scalar(random, field, text))
		}
	}
}

func scalar(random *rand.Rand, field protoreflect.FieldDescriptor, text string) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(random.IntN(2) == 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", text, "web"}[random.IntN(3)])
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(7))) // 6 is no health
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, 1e-9, 0.99537, 86000.5, 1e21, -1}[random.IntN(6)])
	default:
		return protoreflect.ValueOfUint32(random.Uint32())
	}
}

// BenchmarkRows is a page of 10,000 endpoints with three votes each.
func BenchmarkRows(b *testing.B) {
	page := &hdsdv1.ListEndpointsResponse{}
	for range 10_000 {
		e := &hdsdv1.Endpoint{Cluster: "web", Address: "10.0.0.1:8080", Health: 1, Since: timestamppb.Now(), Reason: "3 of 3 checkers say HEALTHY"}
		for range 3 {
			e.Observations = append(e.Observations, &hdsdv1.Observation{Checker: "checker-1", Status: 1, HttpStatusCode: new(uint32(200)), Time: timestamppb.New(time.Now())})
		}
		page.Endpoints = append(page.Endpoints, e)
	}
	for name, encode := range map[string]func(proto.Message) ([]byte, error){"rows": compactJSON, "protojson": standardJSON} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := encode(page); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
