package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/health"
)

// rowJSON returns a row, or a page of rows, as JSON on one line: the result of compactJSON for
// its message, without that message, in a tenth of the time.
func rowJSON[Row any, M proto.Message](row Row, fields func(*object, Row), message func(Row) M) ([]byte, error) {
	o := object{text: append(make([]byte, 0, rowSize), '{')}
	fields(&o, row)
	if o.invalid {
		return compactJSON(message(row)) // reports the error
	}
	return append(o.text, '}'), nil
}

// rowSize exceeds the length of an endpoint with three votes.
const rowSize = 900

// compactJSON returns a message as stable JSON on one line: protojson varies its white space on
// purpose.
func compactJSON(m proto.Message) ([]byte, error) {
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

	seconds [8]secondText // the latest ones: many times in an answer are of the same second

	observations repeated[health.Observation]
	zones        repeated[health.ZoneVerdict]
}

// secondText is the text of a second.
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

// begin begins a field that is an object. It needs its end.
func (o *object) begin(name string) {
	o.name(name)
	o.text = append(o.text, '{')
}

func (o *object) end() { o.text = append(o.text, '}') }

const (
	seenFirst = 16 // number of rows after which a list reserves memory
	roomMore  = 8  // and a fraction for longer rows
)

// writeRows writes a field that is a list of objects. It reserves memory for a long list by the
// mean size of its first objects.
func writeRows[Row any](o *object, name string, rows []Row, fields func(*object, *Row)) {
	o.name(name)
	o.text = append(o.text, '[')
	began := len(o.text)
	for i := range rows {
		if i == seenFirst {
			meanSize := (len(o.text) - began) / seenFirst
			o.text = withRoom(o.text, (len(rows)-i)*(meanSize+meanSize/roomMore))
		}
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = append(o.text, '{')
		fields(o, &rows[i])
		o.text = append(o.text, '}')
	}
	o.text = append(o.text, ']')
}

// repeated is the latest list of a name, and its place in the text.
type repeated[Row any] struct {
	rows     []Row
	from, to int
}

// writeAgain is writeRows for a list that adjacent rows mostly share: then it copies the text.
func writeAgain[Row comparable](o *object, latest *repeated[Row], name string, rows []Row, fields func(*object, *Row)) {
	if latest.to > 0 && slices.Equal(rows, latest.rows) {
		o.text = append(append(o.text, ','), o.text[latest.from:latest.to]...)
		return
	}
	start := len(o.text) + len(",")
	writeRows(o, name, rows, fields)
	*latest = repeated[Row]{rows, start, len(o.text)}
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

// float writes the shortest decimal that reads back as value.
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

func (o *object) status(name string, value health.Status) {
	if !value.Valid() {
		o.name(name) // as a number, as protojson does
		o.text = strconv.AppendUint(o.text, uint64(value), 10)
		return
	}
	o.string(name, value.String())
}

// time writes a time with 0, 3, 6 or 9 digits behind the second; nothing if it is zero.
func (o *object) time(name string, value time.Time) {
	if value.IsZero() {
		return
	}
	o.name(name)
	second := value.Unix()
	written := &o.seconds[second&int64(len(o.seconds)-1)]
	if written.text == nil || second != written.second {
		written.second = second
		utc := value.UTC()
		o.invalid = o.invalid || utc.Year() < 1 || utc.Year() > 9999
		written.text = utc.AppendFormat(written.text[:0], "2006-01-02T15:04:05")
	}
	o.text = append(append(o.text, '"'), written.text...)
	o.fraction(value.Nanosecond())
	o.text = append(o.text, 'Z', '"')
}

// fraction writes the fraction of a second in three, six or nine digits, or none.
func (o *object) fraction(nanos int) {
	if nanos == 0 {
		return
	}
	o.text = append(o.text, '.')
	for unit := int(1e8); unit > 0; unit /= 10 {
		o.text = append(o.text, '0'+byte(nanos/unit%10))
		if (unit == 1e6 || unit == 1e3) && nanos%unit == 0 {
			return
		}
	}
}
