package simulate

import "testing"

func TestSpread(t *testing.T) {
	for name, test := range map[string]struct {
		values []weighed
		want   Spread
	}{
		"none":      {nil, Spread{}},
		"one":       {[]weighed{{3, 1}}, Spread{3, 3, 3, 3, 1}},
		"two":       {[]weighed{{3, 1}, {1, 1}}, Spread{1, 1, 3, 2, 1.5}},
		"three":     {[]weighed{{4, 1}, {1, 1}, {1, 1}}, Spread{1, 1, 4, 2, 2}},
		"weighed":   {[]weighed{{1, 3}, {5, 1}}, Spread{1, 1, 5, 2, 2.5}},
		"absent":    {[]weighed{{9, 0}, {2, 2}}, Spread{2, 2, 2, 2, 1}},
		"only zero": {[]weighed{{0, 4}}, Spread{}},
	} {
		if got := spreadOf(test.values); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}
