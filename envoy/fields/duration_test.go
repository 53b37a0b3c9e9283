package fields

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestDurationsAsAPeerGivesThem: none turns into one of the other sign.
func TestDurationsAsAPeerGivesThem(t *testing.T) {
	for _, c := range []struct {
		seconds int64
		nanos   int32
		want    time.Duration
	}{
		{0, 0, 0},
		{1, 500_000_000, 1500 * time.Millisecond},
		{-1, -500_000_000, -1500 * time.Millisecond},
		{math.MaxInt64, math.MaxInt32, math.MaxInt64},
		{math.MinInt64, math.MinInt32, math.MinInt64},
		{int64(math.MaxInt64/time.Second) - 1, math.MaxInt32, math.MaxInt64},
		{-int64(math.MaxInt64/time.Second) + 1, math.MinInt32, math.MinInt64},
	} {
		wire, err := proto.Marshal(&durationpb.Duration{Seconds: c.seconds, Nanos: c.nanos})
		if err != nil {
			t.Fatal(err)
		}
		if got := Duration(wire); got != c.want {
			t.Errorf("%d s and %d ns are %v, want %v", c.seconds, c.nanos, got, c.want)
		}
	}
}
