package recording

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hdsd/catalog"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/source/sample"
)

// recordShort returns a short recording.
func recordShort(t testing.TB) []byte {
	t.Helper()
	r := newRun(t, time.Now(), &log.State{GivenBack: map[string]bool{"web": true}}, config())
	r.runFleet(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80"))
	return r.file.Bytes()
}

// TestReplayOfCutOffFile replays a file up to its end, wherever the end is, as after kill -9.
func TestReplayOfCutOffFile(t *testing.T) {
	file := recordShort(t)
	whole, err := replay(file)
	if err != nil {
		t.Fatal(err)
	}
	previous := uint64(0)
	for size := len(file) - 1; size >= 0; size -= 1 + size/100 {
		got, err := replay(file[:size])
		switch {
		case err != nil && got.Events == 0 && size < 400: // within the state
		case err != nil || got.Difference != "" || got.Reason != Killed || got.Events > whole.Events || previous > 0 && got.Events > previous:
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		default:
			previous = got.Events
		}
	}
}

// TestNewReaderErrors covers unreadable files and their errors.
func TestNewReaderErrors(t *testing.T) {
	file := recordShort(t)
	lineEnd := bytes.IndexByte(file, '\n') + 1
	damaged := bytes.Clone(file)
	damaged[len(file)/2] ^= 1
	frame := func(payload string) []byte {
		header := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
		return append(append(bytes.Clone(file[:lineEnd]), binary.BigEndian.AppendUint32(header, crc32.Checksum([]byte(payload), castagnoli))...), payload...)
	}
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":            {nil, "this is no recording of hdsd"},
		"another file":       {[]byte("static_resources:\n"), "this is no recording of hdsd"},
		"a long line":        {bytes.Repeat([]byte("x"), 1<<20), "this is no recording of hdsd"},
		"another form":       {[]byte("hdsd recording 12\nwhatever"), `form "12", and this hdsd reads form 1: use the hdsd that wrote it`},
		"the first line":     {file[:lineEnd], "it ends before the first event: the file is cut off"},
		"a flipped bit":      {damaged, "the file is damaged: a checksum does not match"},
		"no compressed data": {frame("\xff\xff\xff"), "it is damaged, or was written by another version of hdsd"},
		"a huge frame":       {append(bytes.Clone(file[:lineEnd]), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0), "the file is damaged"},
	} {
		if _, err := replay(test.file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestReplayDifferences covers the differences that Replay finds, with their event.
func TestReplayDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		falsify func(*run)
		want    string
	}{
		"an additional effect": {func(r *run) {
			r.e.Begin(r.now, machine.Begun{})
			r.e.Effect(machine.ChangesLeftOut{Count: 1})
			r.e.End()
		}, "event 1 (Begun, "},
		"the number of effects": {func(r *run) {
			r.e.Begin(r.now, machine.Begun{})
			r.e.Effect(machine.ChangesLeftOut{Count: 1})
			r.e.End()
		}, "it had 1 effects then, and has 0 now"},
		"another effect": {func(r *run) {
			r.e.Begin(r.now, machine.Answered{})
			r.e.Effect(machine.ChangesLeftOut{Count: 1})
			r.e.End()
		}, "it has other effects than then"},
		"other endpoints": {func(r *run) {
			k := *catalog.Prepare(sample.Web("web", "10.0.0.1:80"), r.rules)
			k.Hashes = k.Hashes[:0]
			r.e.Begin(r.now, machine.Delivered{Delivery: catalog.Delivery{Rules: r.rules, Changed: []catalog.Change{{Cluster: &k}}}})
			r.e.End()
		}, "hdsd checks other endpoints than then of web"},
	} {
		r := newRun(t, time.Now(), &log.State{}, config())
		test.falsify(r)
		r.e.Flush()
		got, err := replay(r.file.Bytes())
		if err != nil || !strings.Contains(got.Difference, test.want) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, test.want)
		}
	}
}

// TestReplayOfPanic ends with the event in which hdsd panicked.
func TestReplayOfPanic(t *testing.T) {
	r := newRun(t, time.Now(), &log.State{}, config())
	r.step(machine.Begun{})
	d := catalog.Delivery{Rules: r.rules, Changed: []catalog.Change{{Cluster: catalog.Prepare(sample.Web("web", "10.0.0.1:80"), r.rules), Renewed: []bool{true}}}}
	r.e.Begin(r.now, machine.Delivered{Delivery: d})
	r.e.Flush()
	if err := r.w.End(Panicked); err != nil {
		t.Fatal(err)
	}
	got, err := replay(r.file.Bytes())
	if err != nil || got.Events != 2 || got.Reason != Panicked || got.Difference != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if text := catchPanic(func() { panic("no") }); !strings.HasPrefix(text, "hdsd ends with it: no\n") {
		t.Errorf("a panic is %q", text)
	}
}

// frame returns a recording with a first line and a stream. Its checksums match.
func frame(t testing.TB, line, plain []byte) []byte {
	file := bytes.NewBuffer(bytes.Clone(line))
	_, w, err := New(&bytes.Buffer{}, &Header{Start: time.Now()}, &log.State{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.file = file
	w.compressed.Reset()
	w.flate.Reset(&w.compressed)
	if _, err := w.Write(Piece{bytes: plain}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestReplayOfMutatedStream ends with an error or a difference, unless a mutation changes nothing.
func TestReplayOfMutatedStream(t *testing.T) {
	file := recordShort(t)
	line, plain := file[:bytes.IndexByte(file, '\n')+1], decompress(t, file)
	random, errors, differences := rand.New(rand.NewPCG(1, 2)), 0, 0
	for range 400 {
		mutated := bytes.Clone(plain)
		for range 1 + random.IntN(4) {
			switch i := random.IntN(len(mutated)); random.IntN(3) {
			case 0:
				mutated[i] = byte(random.Uint32())
			case 1:
				mutated[i] ^= 1 << random.IntN(8)
			case 2:
				mutated = slices.Delete(mutated, i, min(i+random.IntN(8), len(mutated)))
			}
		}
		got, err := replay(frame(t, line, mutated))
		if err != nil {
			errors++
		} else if got.Difference != "" {
			differences++
		}
	}
	if errors < 40 || differences < 40 {
		t.Errorf("%d errors, %d differences", errors, differences)
	}
}

// FuzzReader replays arbitrary files, which must end without a panic.
func FuzzReader(f *testing.F) {
	file := recordShort(f)
	lineEnd := bytes.IndexByte(file, '\n') + 1
	plain := decompress(f, file)
	f.Add(plain)
	f.Add(plain[:len(plain)/2])
	f.Fuzz(func(t *testing.T, plain []byte) {
		for _, file := range [][]byte{frame(t, file[:lineEnd], plain), plain, append(file[:lineEnd:lineEnd], plain...)} {
			_, _ = replay(file)
		}
	})
}
