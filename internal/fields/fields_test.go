package fields_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/internal/fields"
)

func number(n protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), value)
}

func TestANumberGetsItsPlace(t *testing.T) {
	one, three := number(1, 7), number(3, 9)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, test := range []struct {
		name       string
		wire, want []byte
		value      uint64
	}{
		{"between", join(one, three), join(one, number(2, 5), three), 5},
		{"at the end", one, join(one, number(2, 5)), 5},
		{"into nothing", nil, number(2, 5), 5},
		{"in place", join(three, number(2, 4), one), join(three, number(2, 5), one), 5},
		{"once", join(number(2, 4), one, number(2, 5)), join(number(2, 5), one), 5},
		{"removed", join(one, number(2, 4), three, number(2, 4)), join(one, three), 0},
		{"not there", one, one, 0},
		{"the same", join(one, number(2, 5)), join(one, number(2, 5)), 5},
	} {
		got, err := fields.WithNumber(test.wire, 2, test.value)
		if err != nil || !bytes.Equal(got, test.want) {
			t.Errorf("%s: %x becomes %x, %v, want %x", test.name, test.wire, got, err, test.want)
		}
	}
}

func TestBrokenMessagesAreErrors(t *testing.T) {
	for _, wire := range [][]byte{{0x80}, {0x0a, 0x05, 1}, {0x08}} {
		if _, err := fields.Rewrite(wire, func(*fields.Field) ([]byte, fields.Action, error) { return nil, fields.Keep, nil }); err == nil {
			t.Errorf("%x is no error", wire)
		}
		if _, err := fields.WithNumber(wire, 2, 1); err == nil {
			t.Errorf("%x is no error", wire)
		}
	}
}
