package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hdsd/health"
)

func drawTime(t *rapid.T, label string) time.Time {
	return time.Unix(0, rapid.Int64Min(0).Draw(t, label)).UTC()
}

func drawTransition(t *rapid.T) health.Transition {
	text := rapid.String()
	status := rapid.Map(rapid.ByteMax(5), func(b byte) health.Status { return health.Status(b) })
	tr := health.Transition{
		Time: drawTime(t, "time"), From: status.Draw(t, "from"), To: status.Draw(t, "to"), Reason: text.Draw(t, "reason"),
		Endpoint: health.Endpoint{
			Cluster: text.Draw(t, "cluster"), Address: text.Draw(t, "address"),
			Locality: health.Locality{Region: text.Draw(t, "region"), Zone: text.Draw(t, "zone"), SubZone: text.Draw(t, "sub-zone")},
		},
	}
	for range rapid.IntRange(0, 5).Draw(t, "observations") {
		o := health.Observation{Checker: text.Draw(t, "checker"), Status: status.Draw(t, "status"),
			HTTPStatusCode: rapid.Uint16().Draw(t, "code"), Disbelieved: text.Draw(t, "disbelieved")}
		if rapid.Bool().Draw(t, "has time") {
			o.Time = drawTime(t, "vote's time")
		}
		tr.Observations = append(tr.Observations, o)
	}
	return tr
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, base := drawTransition(t), rapid.Uint64().Draw(t, "base")
		got, ok := decodeRecord(appendRecord(nil, base, &want), base, names{})
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Fatal(ok, diff)
		}
	})
}

func TestTimesOutOfRange(t *testing.T) {
	for in, want := range map[time.Time]time.Time{
		time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC): time.Unix(0, 0).UTC(),
		time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC): maxNanos.UTC(),
	} {
		if got := timeOf(nanos(in)); got != want {
			t.Errorf("%v is read as %v", in, got)
		}
	}
}

// FuzzDecodeRecord: no bytes panic, and what can be read is the same after writing it and
// reading it again, and without its observations.
func FuzzDecodeRecord(f *testing.F) {
	for _, tr := range append(flips(3), health.Transition{}) {
		f.Add(appendRecord(nil, nanos(tr.Time)+1, &tr), nanos(tr.Time)+1)
	}
	f.Fuzz(func(t *testing.T, b []byte, base uint64) {
		first, ok := decodeRecord(b, base, names{})
		brief, also := decodeBrief(b, base, names{})
		if also != ok {
			t.Fatalf("can be read: %t, without observations: %t", ok, also)
		}
		if !ok {
			return
		}
		if brief.Observations = first.Observations; !cmp.Equal(first, brief) {
			t.Fatal(cmp.Diff(first, brief))
		}
		second, ok := decodeRecord(appendRecord(nil, base, &first), base, names{})
		if diff := cmp.Diff(first, second); !ok || diff != "" {
			t.Fatal(ok, diff)
		}
	})
}

// FuzzDecodePlan is FuzzDecodeRecord for plans, in any order.
func FuzzDecodePlan(f *testing.F) {
	f.Add(encodePlan("checker-1", []health.Hash{1, 1 << 63}))
	f.Fuzz(func(t *testing.T, b []byte) {
		checker, hashes, ok := decodePlan(b)
		if !ok {
			return
		}
		again, sorted, ok := decodePlan(encodePlan(checker, hashes))
		if !ok || again != checker || len(sorted) != len(hashes) {
			t.Fatal(checker, hashes, again, sorted)
		}
	})
}

func TestSealTellsEveryChangedBit(t *testing.T) {
	k := key(1, 2)
	sealed := seal(k, []byte("value"))
	if value, ok := unseal(k, sealed); !ok || string(value) != "value" {
		t.Fatal("cannot be read:", value)
	}
	for bit := range 8 * (len(k) + len(sealed)) {
		k, sealed := append([]byte(nil), k...), append([]byte(nil), sealed...)
		all := [][]byte{k, sealed}
		at := bit / 8
		if at < len(k) {
			all[0][at] ^= 1 << (bit % 8)
		} else {
			all[1][at-len(k)] ^= 1 << (bit % 8)
		}
		if _, ok := unseal(k, sealed); ok {
			t.Errorf("bit %d can change", bit)
		}
	}
}
