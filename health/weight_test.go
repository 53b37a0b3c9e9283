package health

import "testing"

func TestMostWeight(t *testing.T) {
	for _, tt := range []struct {
		claims []float64
		want   float64
	}{
		{nil, 4}, {[]float64{0}, 4}, {[]float64{1e6, 0, 0}, 4}, {[]float64{2, 2, 9}, 8}, {[]float64{1e6, 1e6, 1, 1}, 4},
	} {
		if got := MostWeight(tt.claims); got != tt.want {
			t.Errorf("%v: %g, want %g", tt.claims, got, tt.want)
		}
	}
}
