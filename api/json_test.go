package api

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// FuzzRows: the encoder of rows writes what protojson does of their messages, and refuses what
// it refuses, whatever stands in the fields.
func FuzzRows(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, "10.0.0.1:80")
	}
	for _, odd := range []string{"\x00\x1f\x7f\"\\/\b\f\n\r\t", "<a>&'\u2028\u202e", "\xff", "ä\U0001f600", "\ufffd"} {
		f.Add(uint64(1), odd)
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		random := rand.New(rand.NewPCG(seed, 1))
		maker := rowMaker{random: random, text: text}
		endpoints, transitions := made[endpointPage](maker), made[transitionPage](maker)
		endpoints.rows, transitions.rows = doubled(random, endpoints.rows), doubled(random, transitions.rows)
		checkRow(t, endpoints, (*object).endpoints, endpointsMessage)
		checkRow(t, transitions, (*object).transitions, transitionsMessage)
		m := &hdsdv1.ListAvailabilityResponse{}
		fill(random, m.ProtoReflect(), text)
		checkRow(t, m, (*object).availabilities, sameMessage[*hdsdv1.ListAvailabilityResponse])
	})
}

// doubled has some rows twice, so that those beside each other have the same lists.
func doubled[Row any](random *rand.Rand, rows []Row) (all []Row) {
	for _, row := range rows {
		all = append(all, slices.Repeat([]Row{row}, 1+random.IntN(2))...)
	}
	return all
}

func checkRow[Row any, M proto.Message](t *testing.T, row *Row, fields func(*object, *Row), message func(*Row) M) {
	t.Helper()
	got, err := rowJSON(row, fields, message)
	checkText(t, message(row), got, err)
}

func checkText(t *testing.T, m proto.Message, got []byte, err error) {
	t.Helper()
	want, wantErr := compactJSON(m)
	if string(got) != string(want) || (err == nil) != (wantErr == nil) {
		t.Errorf("%T: got %v\n%s\nprotojson: %v\n%s", m, err, got, wantErr, want)
	}
}

// TestRowsAreComplete: what rows are written as has every field of their messages. So a field
// that is added to a message, and not to the rows or their encoder, fails.
func TestRowsAreComplete(t *testing.T) {
	maker := rowMaker{random: rand.New(rand.NewPCG(1, 1)), text: "web", full: true}
	endpoints, transitions := made[endpointPage](maker), made[transitionPage](maker)
	for _, m := range []proto.Message{endpointsMessage(endpoints), transitionsMessage(transitions)} {
		wantAllSet(t, m.ProtoReflect())
	}
	checkRow(t, endpoints, (*object).endpoints, endpointsMessage)
	checkRow(t, transitions, (*object).transitions, transitionsMessage)
}

func wantAllSet(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if m.Descriptor().FullName() == "google.protobuf.Timestamp" {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case !m.Has(field):
			t.Errorf("%s is not set", field.FullName())
		case field.IsList():
			wantAllSet(t, m.Get(field).List().Get(0).Message())
		case field.Message() != nil:
			wantAllSet(t, m.Get(field).Message())
		}
	}
}

// rowMaker makes rows at random, or with something in every field.
type rowMaker struct {
	random *rand.Rand
	text   string
	full   bool
}

func made[Row any](k rowMaker) *Row {
	row := new(Row)
	k.fill(reflect.ValueOf(row).Elem())
	return row
}

func (k rowMaker) fill(v reflect.Value) {
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem() // may be set although its name is not exported
	if !k.full && k.random.IntN(4) == 0 {
		return
	}
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = k.time()
		return
	case *health.Status:
		*to = health.Status(1 + k.random.IntN(6)) // 6 is no health
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{k.text, "web"}[k.random.IntN(2)])
	case reflect.Int:
		v.SetInt(1 + k.random.Int64N(1<<40))
	case reflect.Uint16, reflect.Uint64:
		v.SetUint(1 + k.random.Uint64N(1<<16-1)<<k.random.IntN(2))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		k.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+k.random.IntN(2), 2))
		for i := range v.Len() {
			k.fill(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			k.fill(field)
		}
		if e, ok := reflect.TypeAssert[*EndpointHealth](v.Addr()); ok && e.Override != nil && e.Voted == nil {
			e.Voted = new(health.Verdict)
		}
	default:
		panic(v.Kind())
	}
}

func (k rowMaker) time() time.Time {
	second := int64(1_700_000_000) // as the time before, often
	switch odd := k.random.IntN(100); {
	case k.full: // the zero time is not set
	case odd == 0:
		second = 253_402_300_800 - k.random.Int64N(2) // the year 10000 is refused
	case odd == 1:
		second = -62_135_596_800 - k.random.Int64N(2) // as is the year 0
	case odd <= 4:
		second = k.random.Int64N(1<<36) - 1<<35
	}
	nanos := []int64{0, 120e6, 5e3, 7, 999_999_999}[k.random.IntN(5)]
	return time.Unix(second, nanos).In(time.FixedZone("", 3600))
}

// fill sets most fields of a message at random.
func fill(random *rand.Rand, m protoreflect.Message, text string) {
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
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", text, "web"}[random.IntN(3)])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, 1e-9, 0.99537, 86000.5, 1e21, -1}[random.IntN(6)])
	default:
		return protoreflect.ValueOfUint32(random.Uint32())
	}
}

// BenchmarkRows is a page of 10,000 endpoints with three votes each.
func BenchmarkRows(b *testing.B) {
	page := &endpointPage{}
	for range 10_000 {
		e := EndpointHealth{Endpoint: health.Endpoint{Cluster: "web", Address: "10.0.0.1:8080"}}
		e.Verdict = health.Verdict{Status: health.Healthy, Since: time.Now(), Reason: "3 of 3 checkers say HEALTHY"}
		for range 3 {
			e.Verdict.Observations = append(e.Verdict.Observations, health.Observation{Checker: "checker-1", Status: health.Healthy, HTTPStatusCode: 200, Time: time.Now()})
		}
		page.rows = append(page.rows, e)
	}
	for name, encode := range map[string]func() ([]byte, error){
		"rows":      func() ([]byte, error) { return rowJSON(page, (*object).endpoints, endpointsMessage) },
		"protojson": func() ([]byte, error) { return compactJSON(endpointsMessage(page)) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
