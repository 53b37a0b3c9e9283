package fields_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy/fields"
)

func TestCount(t *testing.T) {
	list := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("a"), structpb.NewNumberValue(1), {}}}
	encoded, err := proto.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	of := list.ProtoReflect().Descriptor()
	// Three values, two of which have a field.
	for left, want := range map[int]int{10: 5, 5: 0, 4: -1, 0: -1} {
		if got := fields.Count(left, of, encoded); got != want {
			t.Errorf("%d left of %d, want %d", got, left, want)
		}
	}
	if got := fields.Count(10, of, []byte{0xff}); got != 10 {
		t.Errorf("garbage counts as %d", 10-got)
	}
	if got := fields.Count(10, of, append(encoded, 0x0a, 0x7f)); got != 5 {
		t.Errorf("up to garbage %d fields are counted, want 5", 10-got)
	}
	deep := []byte{}
	for range 20_000 { // a value with a list with a value, and so on
		deep = append([]byte{0x0a, 0}, deep...)
	}
	if got := fields.Count(1000, of, deep); got != -1 {
		t.Errorf("20,000 empty values leave %d of 1000", got)
	}
}
