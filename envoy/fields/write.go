package fields

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Action is the change of a field.
type Action uint8

// Keep leaves a field unchanged, Replace sets the value of a length-delimited one, and Drop
// removes it.
const (
	Keep Action = iota
	Replace
	Drop
)

// To returns, for Rewrite, the change of a field to a value: none if that is the field's own
// slice.
func (f *Field) To(value []byte, err error) ([]byte, Action, error) {
	if err != nil || len(value) == len(f.Value) && (len(value) == 0 || &value[0] == &f.Value[0]) {
		return nil, Keep, err
	}
	return value, Replace, nil
}

// ToText returns, for Rewrite, the change of a field to a text: an empty one removes it.
func (f *Field) ToText(text string) ([]byte, Action, error) {
	switch {
	case string(f.Value) == text:
		return nil, Keep, nil
	case text == "":
		return nil, Drop, nil
	}
	return []byte(text), Replace, nil
}

// Rewrite returns a message with changed fields. It returns wire itself if none is. It copies a
// value before it continues. extra estimates the growth of the message in bytes.
func Rewrite(wire []byte, extra int, change func(*Field) (value []byte, action Action, err error)) ([]byte, error) {
	var rewritten []byte
	var f Field // once on the heap
	changed := false
	for offset := 0; offset < len(wire); {
		if err := f.read(wire[offset:]); err != nil {
			return nil, err
		}
		value, action, err := change(&f)
		if err != nil {
			return nil, err
		}
		if action != Keep && !changed {
			changed = true
			rewritten = append(make([]byte, 0, len(wire)+max(extra, len(value)+16)), wire[:offset]...)
		}
		switch {
		case action == Replace:
			rewritten = AppendBytes(rewritten, f.Number, value)
		case action == Keep && changed:
			rewritten = append(rewritten, f.Raw...)
		}
		offset += len(f.Raw)
	}
	if !changed {
		return wire, nil
	}
	return rewritten, nil
}

// AppendHead appends the head of a value of so many bytes: the field's tag and the size.
func AppendHead(b []byte, number protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
}

// AppendBytes appends a length-delimited field.
func AppendBytes[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	return append(AppendHead(b, number, len(value)), value...)
}

// AppendNumber appends a varint.
func AppendNumber(b []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), value)
}

// AppendText appends a text, unless it is empty.
func AppendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return AppendBytes(b, number, text)
}

// WithNumber returns a message with a number set to a value: in its place, or before the fields
// of higher numbers. 0 removes it. It returns wire itself if it has that value.
func WithNumber(wire []byte, number protowire.Number, value uint64) ([]byte, error) {
	var previous uint64
	count, before, offset := 0, -1, 0
	if err := Each(wire, func(f *Field) bool {
		if f.IsNumber(number) {
			previous = f.Varint()
			count++
		} else if f.Number > number && before < 0 {
			before = offset
		}
		offset += len(f.Raw)
		return true
	}); err != nil {
		return nil, err
	}
	if previous == value && (count == 1 || count == 0) || value == 0 && count == 0 {
		return wire, nil
	}
	field := AppendNumber(nil, number, value)
	if value == 0 {
		field = nil
	}
	if count == 0 {
		if before < 0 {
			before = len(wire)
		}
		return slices.Concat(wire[:before], field, wire[before:]), nil
	}
	result := make([]byte, 0, len(wire)+len(field))
	_ = Each(wire, func(f *Field) bool { // no error: it was read above
		if !f.IsNumber(number) {
			result = append(result, f.Raw...)
			return true
		}
		result, field = append(result, field...), nil
		return true
	})
	return result, nil
}
