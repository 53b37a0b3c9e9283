package fields

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is one field of an encoded message.
type Field struct {
	Number protowire.Number
	Kind   protowire.Type
	Raw    []byte // with its tag
	Value  []byte // of a length-delimited one
}

// Is reports whether a field has a number and is length-delimited: a text, bytes or a
// message.
func (f *Field) Is(number protowire.Number) bool {
	return f.Number == number && f.Kind == protowire.BytesType
}

// IsNumber reports whether a field has a number and is a varint.
func (f *Field) IsNumber(number protowire.Number) bool {
	return f.Number == number && f.Kind == protowire.VarintType
}

// Varint returns the value of a varint.
func (f *Field) Varint() uint64 {
	_, _, head := protowire.ConsumeTag(f.Raw)
	value, _ := protowire.ConsumeVarint(f.Raw[head:])
	return value
}

// Next returns the first field of an encoded message.
func Next(wire []byte) (Field, error) {
	number, kind, head := protowire.ConsumeTag(wire)
	if head < 0 {
		return Field{}, fmt.Errorf("read a tag: %w", protowire.ParseError(head))
	}
	var value []byte
	size := 0
	if kind == protowire.BytesType {
		value, size = protowire.ConsumeBytes(wire[head:])
	} else {
		size = protowire.ConsumeFieldValue(number, kind, wire[head:])
	}
	if size < 0 {
		return Field{}, fmt.Errorf("read field %d: %w", number, protowire.ParseError(size))
	}
	return Field{Number: number, Kind: kind, Raw: wire[: head+size : head+size], Value: slices.Clip(value)}, nil
}

// Each calls visit with each field, until visit returns false. The field changes then.
func Each(wire []byte, visit func(*Field) bool) (err error) {
	var f Field // once on the heap
	for len(wire) > 0 {
		if f, err = Next(wire); err != nil {
			return err
		}
		if wire = wire[len(f.Raw):]; !visit(&f) {
			return nil
		}
	}
	return nil
}

// Action is what becomes of a field.
type Action uint8

// Keep leaves a field as it is, Replace gives a length-delimited one another value, and Drop
// leaves it out.
const (
	Keep Action = iota
	Replace
	Drop
)

// To returns, for Rewrite, what becomes of a field that is to have a value: it stays if that
// is the slice that it has.
func (f *Field) To(value []byte, err error) ([]byte, Action, error) {
	if err != nil || len(value) == len(f.Value) && (len(value) == 0 || &value[0] == &f.Value[0]) {
		return nil, Keep, err
	}
	return value, Replace, nil
}

// ToText returns, for Rewrite, what becomes of a field that is to have a text: it goes if that
// is empty.
func (f *Field) ToText(text string) ([]byte, Action, error) {
	switch {
	case string(f.Value) == text:
		return nil, Keep, nil
	case text == "":
		return nil, Drop, nil
	}
	return []byte(text), Replace, nil
}

// Rewrite returns a message of which fields are changed. It returns wire itself if none is.
func Rewrite(wire []byte, change func(*Field) (value []byte, do Action, err error)) ([]byte, error) {
	var out []byte
	var f Field // once on the heap
	changed := false
	for at := 0; at < len(wire); {
		var err error
		if f, err = Next(wire[at:]); err != nil {
			return nil, err
		}
		value, do, err := change(&f)
		if err != nil {
			return nil, err
		}
		if do != Keep && !changed {
			changed = true
			out = append(make([]byte, 0, len(wire)+len(value)+16), wire[:at]...)
		}
		switch {
		case do == Replace:
			out = AppendBytes(out, f.Number, value)
		case do == Keep && changed:
			out = append(out, f.Raw...)
		}
		at += len(f.Raw)
	}
	if !changed {
		return wire, nil
	}
	return out, nil
}

// AppendHead appends what comes before a value of so many bytes: the field's tag and the size.
func AppendHead(to []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.BytesType), uint64(size))
}

// AppendBytes appends a length-delimited field.
func AppendBytes(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// AppendText appends a text, unless it is empty.
func AppendText(to []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return to
	}
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), text)
}

// WithNumber returns a message in which a number has a value: in its place, or before the
// fields of higher numbers. 0 removes it. It returns wire itself if it has that value.
func WithNumber(wire []byte, number protowire.Number, value uint64) ([]byte, error) {
	var had uint64
	count, before, at := 0, -1, 0
	if err := Each(wire, func(f *Field) bool {
		if f.IsNumber(number) {
			had = f.Varint()
			count++
		} else if f.Number > number && before < 0 {
			before = at
		}
		at += len(f.Raw)
		return true
	}); err != nil {
		return nil, err
	}
	if had == value && (count == 1 || count == 0) || value == 0 && count == 0 {
		return wire, nil
	}
	one := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
	if value == 0 {
		one = nil
	}
	if count == 0 {
		if before < 0 {
			before = len(wire)
		}
		return slices.Concat(wire[:before], one, wire[before:]), nil
	}
	out := make([]byte, 0, len(wire)+len(one))
	_ = Each(wire, func(f *Field) bool { // no error: it was read above
		if !f.IsNumber(number) {
			out = append(out, f.Raw...)
			return true
		}
		out, one = append(out, one...), nil
		return true
	})
	return out, nil
}

// Fields of google.protobuf.Duration.
const durationSeconds, durationNanos = 1, 2

// AppendDuration appends an encoded google.protobuf.Duration without a tag. It must not be negative.
func AppendDuration(to []byte, d time.Duration) []byte {
	to = protowire.AppendVarint(protowire.AppendTag(to, durationSeconds, protowire.VarintType), uint64(d/time.Second))
	return protowire.AppendVarint(protowire.AppendTag(to, durationNanos, protowire.VarintType), uint64(d%time.Second))
}

// Duration reads an encoded google.protobuf.Duration; one that cannot be read is 0, and one too long
// for a time.Duration is the longest.
func Duration(wire []byte) time.Duration {
	var seconds, nanos int64
	if Each(wire, func(f *Field) bool {
		switch {
		case f.IsNumber(durationSeconds):
			seconds = int64(f.Varint())
		case f.IsNumber(durationNanos):
			nanos = int64(int32(f.Varint()))
		}
		return true
	}) != nil {
		return 0
	}
	if limit := int64(math.MaxInt64/time.Second) - 3; seconds > limit { // nanos may be two seconds more
		return math.MaxInt64
	} else if seconds < -limit {
		return math.MinInt64
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos)
}
