package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/internal/wire"
)

// shared is a message of two parts, of which others send the first as well.
type shared struct{ frame, tail mem.Buffer }

func (s shared) MarshalWire() (mem.BufferSlice, error) {
	s.frame.Ref()
	return mem.BufferSlice{s.frame, s.tail}, nil
}

type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) UnmarshalWire(mem.BufferSlice) error { return errRefused }

func TestOrdinaryMessagesAreLeftToTheStandardCodec(t *testing.T) {
	message := wrapperspb.String("as ever")
	got, err := wire.Codec().Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	want, err := encoding.GetCodecV2("proto").Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Materialize(), want.Materialize()) {
		t.Errorf("encoded %x, the standard codec gives %x", got.Materialize(), want.Materialize())
	}
	var back wrapperspb.StringValue
	if err := wire.Codec().Unmarshal(got, &back); err != nil || !proto.Equal(&back, message) {
		t.Errorf("decoded %v, %v", &back, err)
	}
	if name := wire.Codec().Name(); name != "proto" {
		t.Errorf("the codec's name is %q, peers expect proto", name)
	}
}

func TestAValueThatIsNoMessageIsAnError(t *testing.T) {
	if _, err := wire.Codec().Marshal("text"); err == nil {
		t.Error("a string was encoded")
	}
	if err := wire.Codec().Unmarshal(nil, "text"); err == nil {
		t.Error("a string was decoded into")
	}
}

func TestOrdinaryMessagesAreCountedBeforeTheyAreDecoded(t *testing.T) {
	list := &structpb.ListValue{}
	for range 65_000 {
		list.Values = append(list.Values, &structpb.Value{})
	}
	for _, want := range []bool{true, false} {
		sent, err := wire.Codec().Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		got := &structpb.ListValue{}
		if err := wire.Codec().Unmarshal(sent, got); (err == nil) != want || want && !proto.Equal(got, list) {
			t.Errorf("%d values: %v", len(list.Values), err)
		}
		for range 1000 {
			list.Values = append(list.Values, &structpb.Value{})
		}
	}
}

// TestOrdinaryMessagesAreSmall: a larger one is refused without a copy of it.
func TestOrdinaryMessagesAreSmall(t *testing.T) {
	in := func(bytes int) mem.BufferSlice {
		sent, err := proto.Marshal(wrapperspb.String(strings.Repeat("x", bytes)))
		if err != nil {
			t.Fatal(err)
		}
		return mem.BufferSlice{mem.SliceBuffer(sent)}
	}
	var got wrapperspb.StringValue
	if err := wire.Codec().Unmarshal(in(4<<20-100), &got); err != nil || len(got.GetValue()) != 4<<20-100 {
		t.Errorf("%d bytes: %v", len(got.GetValue()), err)
	}
	got.Reset()
	if err := wire.Codec().Unmarshal(in(4<<20), &got); err == nil || !strings.Contains(err.Error(), "up to 4194304 bytes") || got.GetValue() != "" {
		t.Errorf("%d bytes: %v", len(got.GetValue()), err)
	}
}

func TestSharedFramesAreNotCopied(t *testing.T) {
	frame := mem.SliceBuffer("frame ")
	out, err := wire.Codec().Marshal(shared{frame, mem.SliceBuffer("tail")})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out.Materialize()); got != "frame tail" {
		t.Errorf("encoded %q", got)
	}
	if &out[0].ReadOnlyData()[0] != &frame[0] {
		t.Error("the shared frame was copied")
	}
}

func TestBytesKeepTheirMemory(t *testing.T) {
	b := make(wire.Bytes, 0, 64)
	start := &b[:1][0]
	in := mem.BufferSlice{mem.SliceBuffer("in two "), mem.SliceBuffer("parts")}
	if err := wire.Codec().Unmarshal(in, &b); err != nil {
		t.Fatal(err)
	}
	if string(b) != "in two parts" || &b[0] != start {
		t.Errorf("got %q, in the same memory: %v", b, &b[0] == start)
	}
	out, err := wire.Codec().Marshal(&b)
	if err != nil || string(out.Materialize()) != "in two parts" {
		t.Errorf("sent %q, %v", out.Materialize(), err)
	}
	if err := wire.Codec().Unmarshal(nil, &b); err != nil || len(b) != 0 {
		t.Errorf("an empty message gave %q, %v", b, err)
	}
}

func TestErrorsAreReturned(t *testing.T) {
	if err := wire.Codec().Unmarshal(nil, refusing{}); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}
