package fields

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is one field of an encoded message.
type Field struct {
	Number protowire.Number
	Kind   protowire.Type
	Raw    []byte // with its tag
	Value  []byte // of a length-delimited one

	varint uint64
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
func (f *Field) Varint() uint64 { return f.varint }

// Next returns the first field of an encoded message.
func Next(wire []byte) (f Field, err error) {
	err = f.read(wire)
	return f, err
}

// read reads the first field of an encoded message.
func (f *Field) read(wire []byte) error {
	if len(wire) > 1 && wire[0] < 0x80 && wire[0]>>3 > 0 && wire[1] < 0x80 { // most fields are like that
		switch size := 2 + int(wire[1]); {
		case wire[0]&7 == byte(protowire.BytesType) && size <= len(wire):
			f.Number, f.Kind, f.Raw, f.Value = protowire.Number(wire[0]>>3), protowire.BytesType, wire[:size:size], wire[2:size:size]
			return nil
		case wire[0]&7 == byte(protowire.VarintType):
			f.Number, f.Kind, f.Raw, f.Value, f.varint = protowire.Number(wire[0]>>3), protowire.VarintType, wire[:2:2], nil, uint64(wire[1])
			return nil
		}
	}
	return f.readAny(wire)
}

// readAny reads a field of any form.
func (f *Field) readAny(wire []byte) error {
	number, kind, head := protowire.ConsumeTag(wire)
	if head < 0 {
		return fmt.Errorf("read a tag: %w", protowire.ParseError(head))
	}
	f.Number, f.Kind, f.Value = number, kind, nil
	size := 0
	switch kind {
	case protowire.BytesType:
		f.Value, size = protowire.ConsumeBytes(wire[head:])
		f.Value = slices.Clip(f.Value)
	case protowire.VarintType:
		f.varint, size = protowire.ConsumeVarint(wire[head:])
	default:
		size = protowire.ConsumeFieldValue(number, kind, wire[head:])
	}
	if size < 0 {
		return fmt.Errorf("read field %d: %w", number, protowire.ParseError(size))
	}
	f.Raw = wire[: head+size : head+size]
	return nil
}

// All returns the fields of an encoded message, up to one that cannot be read: it leaves invalid
// input to the decoder. A field is valid until the next one.
func All(wire []byte) iter.Seq[*Field] {
	return func(yield func(*Field) bool) {
		var f Field
		for len(wire) > 0 {
			if f.read(wire) != nil || !yield(&f) {
				return
			}
			wire = wire[len(f.Raw):]
		}
	}
}

// Each calls visit with each field, until visit returns false. The field is reused.
func Each(wire []byte, visit func(*Field) bool) (err error) {
	var f Field // once on the heap
	for len(wire) > 0 {
		if err = f.read(wire); err != nil {
			return err
		}
		if wire = wire[len(f.Raw):]; !visit(&f) {
			return nil
		}
	}
	return nil
}

// Text returns the text of a field: of several, the last one counts. It is empty if there is
// none. An error means that the message cannot be read to its end.
func Text(wire []byte, number protowire.Number) (string, error) {
	var text []byte
	err := Each(wire, func(f *Field) bool {
		if f.Is(number) {
			text = f.Value
		}
		return true
	})
	return string(text), err
}

// Message returns the encoded message in a field: of several, all count (Merge). It is nil if
// there is none, or an empty one. An error means that the message around it cannot be read to
// its end.
func Message(wire []byte, number protowire.Number) (message []byte, err error) {
	err = Each(wire, func(f *Field) bool {
		if f.Is(number) {
			message = Merge(message, f.Value)
		}
		return true
	})
	return message, err
}

// Merge joins two occurrences of one message.
func Merge(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return slices.Concat(a, b)
}
