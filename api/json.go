package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// compactJSON returns a message as JSON on one line. The rows of long lists have an
// encoder of their own (rows.go), which takes a tenth of protojson's time. Both write the
// same.
func compactJSON(m proto.Message) ([]byte, error) {
	o := object{}
	switch m := m.(type) {
	case *hdsdv1.ListEndpointsResponse:
		writeMessage(&o, m, (*object).endpoints)
	case *hdsdv1.ListTransitionsResponse:
		writeMessage(&o, m, (*object).transitions)
	case *hdsdv1.ListAvailabilityResponse:
		writeMessage(&o, m, (*object).availabilities)
	case *hdsdv1.Endpoint:
		writeMessage(&o, m, (*object).endpoint)
	case *hdsdv1.Transition:
		writeMessage(&o, m, (*object).transition)
	default:
		return standardJSON(m)
	}
	if o.invalid {
		return standardJSON(m) // says what is wrong
	}
	return o.text, nil
}

// rowSize is more than the length of an endpoint with three votes.
const rowSize = 900

// standardJSON is protojson on one line: protojson varies its white space on purpose, and
// programs want it stable.
func standardJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	err = json.Compact(&line, text)
	return line.Bytes(), err
}

// object writes JSON objects as protojson does with EmitDefaultValues.
type object struct {
	text    []byte
	invalid bool // protojson refuses a value

	seconds [8]secondText // the latest ones; many times of an answer are of the same second
}

// secondText is how a second is written.
type secondText struct {
	second int64 // since 1970
	text   []byte
}

// name begins a field. The first field of an object follows its brace.
func (o *object) name(name string) {
	if last := o.text[len(o.text)-1]; last != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, '"', ':')
}

// writeMessage writes a whole message.
func writeMessage[M any](o *object, m *M, fields func(*object, *M)) {
	o.text = append(make([]byte, 0, rowSize), '{')
	fields(o, m)
	o.text = append(o.text, '}')
}

// writeField writes a field that is a message; nothing if it is absent.
func writeField[M any](o *object, name string, m *M, fields func(*object, *M)) {
	if m == nil {
		return
	}
	o.name(name)
	o.text = append(o.text, '{')
	fields(o, m)
	o.text = append(o.text, '}')
}

const (
	seenFirst = 16 // messages of a list before there is room for all
	roomMore  = 8  // and a part of that for longer ones
)

// writeList writes a field that is a list of messages. It makes room for a long one when it
// has seen how long its first messages are.
func writeList[M any](o *object, name string, all []*M, fields func(*object, *M)) {
	o.name(name)
	o.text = append(o.text, '[')
	began := len(o.text)
	for i, m := range all {
		if i == seenFirst {
			each := (len(o.text) - began) / seenFirst
			o.text = slices.Grow(o.text, (len(all)-i)*(each+each/roomMore))
		}
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = append(o.text, '{')
		fields(o, m)
		o.text = append(o.text, '}')
	}
	o.text = append(o.text, ']')
}

func (o *object) string(name, value string) {
	o.name(name)
	o.quoted(value)
}

func (o *object) optionalString(name string, value *string) {
	if value != nil {
		o.string(name, *value)
	}
}

func (o *object) quoted(value string) {
	o.text = append(o.text, '"')
	begun := 0
	ascii := true
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c >= utf8.RuneSelf {
			ascii = false
		}
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		o.text = append(append(o.text, value[begun:i]...), '\\')
		begun = i + 1
		switch c {
		case '"', '\\':
			o.text = append(o.text, c)
		case '\b':
			o.text = append(o.text, 'b')
		case '\f':
			o.text = append(o.text, 'f')
		case '\n':
			o.text = append(o.text, 'n')
		case '\r':
			o.text = append(o.text, 'r')
		case '\t':
			o.text = append(o.text, 't')
		default:
			const digits = "0123456789abcdef"
			o.text = append(o.text, 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	o.invalid = o.invalid || !ascii && !utf8.ValidString(value)
	o.text = append(append(o.text, value[begun:]...), '"')
}

func (o *object) number(name string, value uint32) {
	o.name(name)
	o.text = strconv.AppendUint(o.text, uint64(value), 10)
}

func (o *object) bool(name string, value bool) {
	o.name(name)
	o.text = strconv.AppendBool(o.text, value)
}

func (o *object) optionalNumber(name string, value *uint32) {
	if value != nil {
		o.number(name, *value)
	}
}

// float writes the shortest decimal that gives the number back.
func (o *object) float(name string, value float64) {
	o.name(name)
	if value == 0 || value >= 1e-6 && value < 1e21 {
		o.text = strconv.AppendFloat(o.text, value, 'f', -1, 64)
		return
	}
	odd, err := json.Marshal(value)
	o.text, o.invalid = append(o.text, odd...), o.invalid || err != nil
}

func (o *object) optionalFloat(name string, value *float64) {
	if value != nil {
		o.float(name, *value)
	}
}

func (o *object) status(name string, value corev3.HealthStatus) {
	known, ok := corev3.HealthStatus_name[int32(value)]
	o.invalid = o.invalid || !ok
	o.string(name, known)
}

func (o *object) optionalStatus(name string, value *corev3.HealthStatus) {
	if value != nil {
		o.status(name, *value)
	}
}

// time writes a time with 0, 3, 6 or 9 digits behind the second; nothing if it is absent.
func (o *object) time(name string, value *timestamppb.Timestamp) {
	if value == nil {
		return
	}
	o.invalid = o.invalid || !value.IsValid()
	o.name(name)
	written := &o.seconds[value.Seconds&int64(len(o.seconds)-1)]
	if written.text == nil || value.Seconds != written.second {
		written.second = value.Seconds
		written.text = time.Unix(value.Seconds, 0).UTC().AppendFormat(written.text[:0], "2006-01-02T15:04:05")
	}
	o.text = append(append(o.text, '"'), written.text...)
	o.fraction(value.Nanos)
	o.text = append(o.text, 'Z', '"')
}

// fraction writes the fraction of a second in three, six or nine digits, or none.
func (o *object) fraction(nanos int32) {
	if nanos <= 0 {
		return
	}
	o.text = append(o.text, '.')
	for unit := int32(1e8); unit > 0; unit /= 10 {
		o.text = append(o.text, '0'+byte(nanos/unit%10))
		if (unit == 1e6 || unit == 1e3) && nanos%unit == 0 {
			return
		}
	}
}
