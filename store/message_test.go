package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
	"hdsd/log"
)

// TestMessagesTakeAnyText: what is not UTF-8 is replaced, and the row can be read.
func TestMessagesTakeAnyText(t *testing.T) {
	row := encodeTrust(&log.Trust{Level: log.Trusted, Reason: "a\xffb", Author: "ann"})
	if got, ok := decodeTrust(row); !ok || got.Reason != "a\uFFFDb" || got.Author != "ann" {
		t.Errorf("%+v, %v", got, ok)
	}
}

// roundTrip decodes a row, and wants what it gives to be the same once it is encoded
// and decoded again.
func roundTrip[T any](t *testing.T, row []byte, decode func([]byte) (T, bool), encode func(T) []byte) {
	t.Helper()
	first, ok := decode(row)
	if !ok {
		return
	}
	second, ok := decode(encode(first))
	if diff := cmp.Diff(first, second); !ok || diff != "" {
		t.Fatal(ok, diff)
	}
}

// FuzzMessages: no bytes panic, and what is read is the same after writing it and
// reading it again.
func FuzzMessages(f *testing.F) {
	f.Add(encodeFreeze(&log.Freeze{Reason: "why", Author: "ann", Since: day}))
	f.Add(encodeFreeze(&log.Freeze{Held: map[health.Hash]health.Status{}}))
	f.Add(encodeHeld(map[health.Hash]health.Status{1: health.Healthy, 1 << 63: health.Timeout}))
	f.Add(encodeOverride(&log.Override{Scope: endpoint("web", "a", "x"), Status: health.Draining, Reason: "why", Author: "ann", Since: day, Until: day}))
	f.Add(encodeVoted(&health.Verdict{Status: health.Timeout, Since: day}))
	f.Add(encodeTrust(&log.Trust{Level: log.Trusted, Reason: "r", Author: "a", Since: day.Add(-100 * 365 * 24 * time.Hour)}))
	f.Add(encodePenalty(&log.Penalty{Value: 2000, At: day, Suppressed: true}))
	for name, some := range someTrials {
		f.Add(encodeTrials(name, some))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		roundTrip(t, row, func(row []byte) (log.Freeze, bool) {
			f, holds, ok := decodeFreeze(row)
			if holds {
				f.Held = map[health.Hash]health.Status{}
			}
			return f, ok
		}, func(f log.Freeze) []byte { return encodeFreeze(&f) })
		roundTrip(t, row, decodeHeld, encodeHeld)
		roundTrip(t, row, decodeOverride, func(o log.Override) []byte { return encodeOverride(&o) })
		roundTrip(t, row, decodeVoted, func(v health.Verdict) []byte { return encodeVoted(&v) })
		roundTrip(t, row, decodeTrust, func(said log.Trust) []byte { return encodeTrust(&said) })
		roundTrip(t, row, decodePenalty, func(p log.Penalty) []byte { return encodePenalty(&p) })
		type named struct {
			Cluster string
			Trials  *log.Trials
		}
		roundTrip(t, row, func(row []byte) (named, bool) {
			cluster, found, ok := decodeTrials(row)
			return named{cluster, found}, ok
		}, func(n named) []byte { return encodeTrials(n.Cluster, n.Trials) })
	})
}
