package inflight

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"golang.org/x/net/http2"
)

var errLater = errors.New("later")

// TestScannerAgainstAFramer writes random frames by another implementation, and reads
// them in parts of random size.
func TestScannerAgainstAFramer(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		var wire bytes.Buffer
		wire.WriteString(http2.ClientPreface)
		to := http2.NewFramer(&wire, nil)
		var want, got []string
		for range random.IntN(20) {
			id, size := uint32(1+2*random.IntN(5)), random.IntN(50)
			content := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, size)
			var err error
			switch random.IntN(4) {
			case 0:
				err = to.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: content, EndHeaders: true})
				want = append(want, fmt.Sprint("begin ", typeHeaders, " ", id))
			case 1:
				err = to.WriteRSTStream(id, http2.ErrCodeCancel)
				want = append(want, fmt.Sprint("begin ", typeReset, " ", id))
			case 2:
				err = to.WriteDataPadded(id, false, content, make([]byte, random.IntN(30)))
				want = append(want, fmt.Sprint("begin ", typeData, " ", id), fmt.Sprint(id, " ", string(content)))
			default:
				err = to.WriteData(id, true, content)
				want = append(want, fmt.Sprint("begin ", typeData, " ", id), fmt.Sprint(id, " ", string(content)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s := scanner{skip: prefaceBytes}
		for b := wire.Bytes(); len(b) > 0; {
			n := min(len(b), 1+random.IntN(40))
			used, err := s.scan(b[:n], func(f frame) {
				got = append(got, fmt.Sprint("begin ", f.kind, " ", f.stream))
				if f.kind == typeData {
					got = append(got, fmt.Sprint(f.stream, " "))
				}
			}, func(id uint32, part []byte) (int, error) {
				if random.IntN(4) == 0 { // it takes less, and the rest later
					take := random.IntN(len(part))
					got[len(got)-1] += string(part[:take])
					return take, errLater
				}
				got[len(got)-1] += string(part)
				return len(part), nil
			})
			if err != nil && !errors.Is(err, errLater) || err == nil && used != n {
				t.Fatal(used, err)
			}
			b = b[used:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d:\n got %q\nwant %q", seed, got, want)
		}
	}
}

// TestJoinedFramesSayTheSame joins random frames in parts of random size, and reads what comes
// of it by another implementation.
func TestJoinedFramesSayTheSame(t *testing.T) {
	before, after := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var wire, joined bytes.Buffer
		to := http2.NewFramer(&wire, nil)
		for range random.IntN(40) {
			content := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(9000))
			var err error
			switch id := uint32(1 + 2*random.IntN(2)); random.IntN(12) {
			case 0:
				err = to.WriteDataPadded(id, false, content, make([]byte, random.IntN(30)))
			case 1:
				err = to.WriteData(id, true, content)
			case 2:
				err = to.WritePing(false, [8]byte{1})
			default:
				err = to.WriteData(id, false, content)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var s scanner
		for b := bytes.Clone(wire.Bytes()); len(b) > 0; {
			n := min(len(b), 1+random.IntN(40_000))
			used, kept, err := s.join(b[:n], func(frame) {}, func(_ uint32, part []byte) (int, error) {
				if random.IntN(9) == 0 {
					return random.IntN(len(part)), errLater
				}
				return len(part), nil
			})
			if err == nil && used != n || kept > used || kept == 0 && used > 0 {
				t.Fatal(used, kept, err)
			}
			joined.Write(b[:kept])
			b = b[used:]
		}
		want, many := contents(t, &wire)
		got, few := contents(t, &joined)
		if got != want {
			t.Fatalf("seed %d:\n got %q\nwant %q", seed, got, want)
		}
		before, after = before+many, after+few
	}
	if after > before*9/10 {
		t.Errorf("of %d frames it made %d", before, after)
	}
}

// contents lists what frames say, however many they are, and how many they are.
func contents(t *testing.T, wire *bytes.Buffer) (text string, frames int) {
	from := http2.NewFramer(nil, wire)
	from.SetMaxReadFrameSize(largest)
	of := uint32(0) // the stream whose data came last, and may go on
	for ; ; frames++ {
		f, err := from.ReadFrame()
		if errors.Is(err, io.EOF) {
			return text, frames
		}
		if err != nil {
			t.Fatal(err)
		}
		data, ok := f.(*http2.DataFrame)
		if !ok || data.StreamID != of {
			of = 0
			text += fmt.Sprint("\n", f.Header().Type, f.Header().StreamID, " ")
		}
		if ok {
			of = data.StreamID
			text += string(data.Data())
			if data.StreamEnded() {
				text += " end"
			}
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 8, 0, 0, 0, 1, 9, 'x'}, uint8(3))
	f.Add([]byte("\x00\x00\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01"), uint8(1))
	errEnough := errors.New("enough")
	f.Fuzz(func(t *testing.T, b []byte, part uint8) {
		var s scanner
		seen := 0
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(part)+1)
			if _, err := s.scan(rest[:n], func(frame) {}, func(_ uint32, data []byte) (int, error) {
				if seen += len(data); seen > 10_000 {
					return 0, errEnough
				}
				return len(data), nil
			}); err != nil {
				return
			}
			rest = rest[n:]
		}
		if seen > len(b) {
			t.Errorf("%d bytes of data in %d", seen, len(b))
		}
	})
}
