package batch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
	"hdsd/log"
	"hdsd/log/sample"
)

// encode encodes entries that are not too large.
func encode(t testing.TB, entries []*log.Entry) []byte {
	t.Helper()
	batch, err := Encode(entries)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func TestBatchesComeBack(t *testing.T) {
	for seed := range uint64(300) {
		entries := sample.Entries(rand.New(rand.NewPCG(seed, 1)), int(seed%20))
		got, err := Decode(encode(t, entries))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(entries) == 0 && len(got) == 0 {
			continue
		}
		if diff := cmp.Diff(entries, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// TestABatchOfAnEarlierReleaseComesBack covers a batch of before events, operators and replaced overrides.
func TestABatchOfAnEarlierReleaseComesBack(t *testing.T) {
	const earlier = "\x01(\xb5/\xfd\x04\x00\xf1\x01\x00\x04\x03web\x00\x06kernel\x03ann\x00\x03\x17\x01\x00\x01\x01\x01\x00\x03\x02\x03\x81\xee\xde\xb0" +
		"\r\x00\xa1\xa6\xdf\xb0\r\x00\x00\x03\x10\x10\x00\x00\x00\x00\x00\x00\x00\a\x00\x00\x00\x00\x00\x00\x00\x01\x00\xf6L\xe1\xb8"
	want := []*log.Entry{{
		Overrides: []log.OverrideChange{{
			Override: log.Override{
				Scope: health.Endpoint{Cluster: "web"}, Status: health.Draining, Reason: "kernel", Author: "ann",
				Since: sample.Start, Until: sample.Start.Add(time.Hour),
			},
			By: "ann",
		}},
		Order: log.OrderID{Process: 7, Number: 1},
	}}
	got, err := Decode([]byte(earlier))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
}

func TestEqualEntriesHaveEqualBytes(t *testing.T) {
	first := encode(t, sample.Entries(rand.New(rand.NewPCG(7, 1)), 50))
	for range 5 { // maps have another order each time
		if again := encode(t, sample.Entries(rand.New(rand.NewPCG(7, 1)), 50)); !bytes.Equal(first, again) {
			t.Fatal("the same entries have other bytes")
		}
	}
}

func TestABatchIsLimited(t *testing.T) {
	entries := []*log.Entry{{Unvoted: make([]health.Hash, 100)}}
	if _, err := encodeWithin(entries, 800, MaxMemory); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the limit: %v", err)
	}
	if _, err := encodeWithin(entries, 900, MaxMemory); err != nil {
		t.Errorf("less than the limit: %v", err)
	}
	if _, err := encodeWithin(entries, 900, 1000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the memory: %v", err)
	}
}

func TestTimesOutsideOfAnInt64OfNanoseconds(t *testing.T) {
	until := time.Date(9999, 12, 31, 0, 0, 0, 5, time.FixedZone("elsewhere", 3600))
	entry := &log.Entry{Overrides: []log.OverrideChange{{Override: log.Override{Since: time.Unix(-1<<35, 3), Until: until}}}}
	got, err := Decode(encode(t, []*log.Entry{entry}))
	if err != nil {
		t.Fatal(err)
	}
	if o := got[0].Overrides[0].Override; !o.Until.Equal(until) || !o.Since.Equal(time.Unix(-1<<35, 3)) {
		t.Fatalf("%v, %v", o.Since, o.Until)
	}
}

func TestFramesJoin(t *testing.T) {
	entries := sample.Entries(rand.New(rand.NewPCG(3, 1)), 40)
	whole := encode(t, entries)
	for _, limit := range []int{2, 3, 100, len(whole), len(whole) + 1, len(whole) + 2, 1 << 20} {
		var j Joiner
		frames := Frames(whole, limit)
		for i, frame := range frames {
			if len(frame) > limit {
				t.Fatalf("limit %d: frame of %d bytes", limit, len(frame))
			}
			got, err := j.Add(frame)
			if err != nil {
				t.Fatal(err)
			}
			if last := i == len(frames)-1; last != (got != nil) || last == j.Unfinished() {
				t.Fatalf("limit %d: frame %d of %d: entries %v, unfinished %v", limit, i, len(frames), got != nil, j.Unfinished())
			} else if last && !cmp.Equal(entries, got) {
				t.Fatal(cmp.Diff(entries, got))
			}
		}
	}
}

// A writer that was replaced leaves an unfinished batch.
func TestAFirstFrameEndsAnUnfinishedBatch(t *testing.T) {
	left := Frames(encode(t, sample.Entries(rand.New(rand.NewPCG(3, 1)), 40)), 100)
	next := []*log.Entry{{Clusters: []string{"web"}}}
	var j Joiner
	for _, frame := range left[:len(left)-1] {
		if got, err := j.Add(frame); got != nil || err != nil {
			t.Fatal(got, err)
		}
	}
	got, err := j.Add(Frames(encode(t, next), 100)[0])
	if err != nil || !cmp.Equal(next, got) {
		t.Fatal(cmp.Diff(next, got), err)
	}
	if _, err := j.Add(left[1]); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a middle frame without a first one: %v", err)
	}
}

func TestBytesOfALaterRelease(t *testing.T) {
	body := func(tag uint64) []byte {
		e := encoder{}
		e.uint(0) // texts
		e.bytes = append(e.bytes, 0)
		e.uint(tag)
		e.unique("content")
		e.uint(endTag)
		return compressor.EncodeAll(e.bytes, []byte{version})
	}
	if _, err := Decode(body(uint64(len(sections)))); !errors.Is(err, ErrNewer) {
		t.Errorf("unknown section: %v", err)
	}
	if got, err := Decode(body(optionalTag)); err != nil || len(got) != 1 || !got[0].IsEmpty() {
		t.Errorf("optional section: %v, %v", got, err)
	}
	if _, err := Decode([]byte{version + 1}); !errors.Is(err, ErrNewer) {
		t.Errorf("later version: %v", err)
	}
}

func TestDamagedBytes(t *testing.T) {
	whole := encode(t, sample.Entries(rand.New(rand.NewPCG(3, 1)), 5))
	for size := range whole {
		if _, err := Decode(whole[:size]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d of %d bytes: %v", size, len(whole), err)
		}
	}
}

// TestDamagedSections covers sections that no release writes.
func TestDamagedSections(t *testing.T) {
	override := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // of an empty scope, without times
	set := "\x02" + strings.Repeat(override+"\x00\x00", 2) // two overrides
	for name, sections := range map[string]map[uint64]string{
		"an override that replaces, and is not there": {3: set, replacedTag: "\x01\x02" + override},
		"an override that replaces two":               {3: set, replacedTag: "\x02\x01" + override + "\x01" + override},
		"overrides in the wrong order":                {3: set, replacedTag: "\x02\x01" + override + "\x00" + override},
		"a kind beyond all numbers":                   {eventsTag: "\x01\x00\x80\x80\x80\x80\x10" + strings.Repeat("\x00", 10)},
		"a boolean that is none":                      {eventsTag: "\x01\x00\x01" + strings.Repeat("\x00", 9) + "\x02"},
	} {
		if _, err := Decode(batchOf(sections)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, sections := range map[string]map[uint64]string{
		"two overrides that replace others": {3: set, replacedTag: "\x02\x00" + override + "\x01" + override},
		"the kind of a later release":       {eventsTag: "\x01\x00\xff\x01" + strings.Repeat("\x00", 10)},
	} {
		if _, err := Decode(batchOf(sections)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// batchOf returns a batch of one entry with sections by their tags, and one empty text.
func batchOf(sections map[uint64]string) []byte {
	e := encoder{bytes: []byte{1, 0, 0}} // the text, and the base of the times
	for _, tag := range slices.Sorted(maps.Keys(sections)) {
		e.uint(tag)
		e.unique(sections[tag])
	}
	e.uint(endTag)
	return compressor.EncodeAll(e.bytes, []byte{version})
}

// FuzzDecode: any content is an error or entries that come back.
func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		content, err := decompressor.DecodeAll(encode(f, sample.Entries(rand.New(rand.NewPCG(seed, 1)), 3))[1:], nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := Decode(compressor.EncodeAll(content, []byte{version}))
		if err != nil {
			return
		}
		again, err := Decode(encode(t, entries))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, entries), encode(t, again)) {
			t.Fatal(cmp.Diff(entries, again))
		}
	})
}

// massFailure returns an entry with the transitions of endpoints that go down together.
func massFailure(endpoints int) *log.Entry {
	e := &log.Entry{}
	for i := range endpoints {
		key := health.Endpoint{
			Cluster:  fmt.Sprintf("cluster-%d", i/100),
			Locality: health.Locality{Region: "region", Zone: fmt.Sprintf("zone-%d", i%3)}, Address: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255),
		}
		now := sample.Start.Add(time.Duration(i) * 3 * time.Microsecond)
		tr := health.Transition{Time: now, Endpoint: key, From: health.Healthy, To: health.Unhealthy, Reason: "2 of 3 checkers report it down"}
		for c := range 3 {
			tr.Observations = append(tr.Observations, health.Observation{
				Checker: fmt.Sprintf("checker-%d", (i+c)%30), Status: health.Unhealthy, HTTPStatusCode: 503, Time: now.Add(-time.Duration(c*i%977) * time.Millisecond),
			})
		}
		e.Transitions = append(e.Transitions, tr)
	}
	return e
}

func BenchmarkMassFailure(b *testing.B) {
	entries := []*log.Entry{massFailure(16384)}
	batch := encode(b, entries)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encode(b, entries)
		}
		b.ReportMetric(float64(len(batch))/16384, "B/transition")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(batch); err != nil {
				b.Fatal(err)
			}
		}
	})
}
