package fields_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"hdsd/envoy/fields"
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
		if _, err := fields.Rewrite(wire, 0, func(*fields.Field) ([]byte, fields.Action, error) { return nil, fields.Keep, nil }); err == nil {
			t.Errorf("%x is no error", wire)
		}
		if _, err := fields.WithNumber(wire, 2, 1); err == nil {
			t.Errorf("%x is no error", wire)
		}
	}
}

func TestTheLastTextCountsAndMessagesAreMerged(t *testing.T) {
	wire := fields.AppendText(fields.AppendText(fields.AppendText(nil, 1, "a"), 2, "b"), 1, "c")
	if got, err := fields.Text(wire, 1); got != "c" || err != nil {
		t.Errorf("the text is %q, %v, want c", got, err)
	}
	if got, err := fields.Message(wire, 1); string(got) != "ac" || err != nil {
		t.Errorf("the message is %q, %v, want ac", got, err)
	}
	broken := append(wire, 0x0a, 0x05)
	if got, err := fields.Text(broken, 1); got != "c" || err == nil {
		t.Errorf("the text of a broken message is %q, %v, want c and an error", got, err)
	}
	numbers := 0
	for range fields.All(broken) {
		numbers++
	}
	if numbers != 3 {
		t.Errorf("a broken message has %d fields, want the 3 before the break", numbers)
	}
}

func TestOccurrencesAreThoseAtAPath(t *testing.T) {
	inner := fields.AppendText(fields.AppendText(number(2, 1), 2, "a"), 2, "b") // the number is no message
	wire := fields.AppendBytes(fields.AppendBytes(fields.AppendBytes(nil, 3, inner), 4, inner), 3, inner)
	if got := fields.Occurrences(wire, 3, 2); got != 4 {
		t.Errorf("there are %d, want 4", got)
	}
}
