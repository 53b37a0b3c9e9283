package packed

import "encoding/binary"

// AppendText appends a text and its size.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Reader decodes values. After an invalid value, Bad is true and every result is zero.
type Reader struct {
	Rest []byte // bytes that follow the latest value
	Bad  bool
}

// Fail marks the bytes as invalid.
func (r *Reader) Fail() { r.Bad, r.Rest = true, nil }

// Byte returns the next byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

// Uint64 returns the next 8 bytes as a number.
func (r *Reader) Uint64() uint64 {
	if len(r.Rest) < 8 {
		r.Fail()
		return 0
	}
	n := binary.BigEndian.Uint64(r.Rest)
	r.Rest = r.Rest[8:]
	return n
}

// Uvarint returns the next number.
func (r *Reader) Uvarint() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Varint returns the next number, which may be negative.
func (r *Reader) Varint() int64 {
	n, size := binary.Varint(r.Rest)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Size returns the number of the items that follow, of at least the given bytes each.
func (r *Reader) Size(each int) int {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)/each) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Bytes returns the bytes of the next text. They are a part of the input.
func (r *Reader) Bytes() []byte {
	size := r.Size(1)
	b := r.Rest[:size]
	r.Rest = r.Rest[size:]
	return b
}

// Text returns the next text.
func (r *Reader) Text() string { return string(r.Bytes()) }
