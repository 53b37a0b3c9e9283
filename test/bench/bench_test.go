package main

import (
	"math"
	"strings"
	"testing"
)

func TestSlowerBeyondNoise(t *testing.T) {
	before := []float64{10, 11, 10, 12, 11}
	for _, c := range []struct {
		name string
		now  []float64
		want bool
	}{
		{"much slower", []float64{20, 21, 22, 20, 21}, true},
		{"a little slower, without overlap", []float64{12.2, 12.2, 12.2, 12.2, 12.2}, true},
		{"slower than the slack, but one turn was as fast as before", []float64{20, 21, 12, 20, 21}, false},
		{"less than the slack", []float64{11.2, 11.3, 11.2, 11.2, 11.3}, false},
		{"faster", []float64{5, 5, 5, 5, 5}, false},
		{"nothing measured", nil, false},
	} {
		if got := slower(c.now, before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestRatiosAreOfTurnsSideBySide(t *testing.T) {
	o := &outcome{
		name: "work", names: []string{ours, "floor", "peer"},
		figures: []figure{{name: "CPU", unit: "ms", floor: "floor", mark: 2}},
		values:  map[string][][]float64{ours: {{20, 40, 30}}, "floor": {{10, 20, 30}}, "peer": {{100, 100, 100}}},
	}
	if got, want := o.ratio(ours, "floor", 0), (spread{median: 2, low: 1, high: 2}); got != want {
		t.Errorf("the ratio is %v, want %v", got, want)
	}
	line := o.rows()[0].String()
	for _, part := range []string{"30.0 (20.0 to 40.0) ms", "2.00 (1.00 to 2.00)", "<= 2, met", "peer: 100 ms"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q does not say %q", line, part)
		}
	}
	o.figures[0].mark = 1.5
	if line := o.rows()[0].String(); !strings.Contains(line, "<= 1.5, missed") {
		t.Errorf("%q does not say that the mark is missed", line)
	}
}

// TestMarksOfReplicas covers marks of what a work takes beyond another one, and of the work itself beside a floor.
func TestMarksOfReplicas(t *testing.T) {
	o := &outcome{
		name: "work", names: []string{ours, alone, onlyEtcd},
		figures: []figure{
			{name: "p50", unit: "ms", floor: onlyEtcd, beyond: alone, mark: 5},
			{name: "p99", unit: "ms", floor: onlyEtcd, itself: true, mark: 5},
			{name: "writes", unit: "/s"},
		},
		values: map[string][][]float64{ours: {{6, 9}, {6, 9}, {1}}, alone: {{2, 3}, {2, 3}, nil}, onlyEtcd: {{2, 3}, {2, 3}, nil}},
	}
	rows := o.rows()
	for i, want := range []string{"5.00 (4.00 to 6.00) ms beyond a single coordinator <= 5 ms, met", "<= 5 ms, missed"} {
		if rows[i].mark != want || rows[i].ratio != "3.00 (3.00 to 3.00)" {
			t.Errorf("the mark is %q with the ratio %s, want %q", rows[i].mark, rows[i].ratio, want)
		}
	}
	if rows[2].peers != "" || rows[2].mark != "" {
		t.Errorf("a figure of hdsd alone has peers %q and the mark %q", rows[2].peers, rows[2].mark)
	}
	if chart := (&results{outcomes: []*outcome{o}}).chart(); len(chart.Rows) != 0 {
		t.Errorf("the plot of ratios has %v", chart.Rows)
	}
}

// TestSkimFindsWhatIsAcknowledged: a response is read no further than that.
func TestSkimFindsWhatIsAcknowledged(t *testing.T) {
	encoded := marshal(t, deltaResponse("nonce-7", 3))
	r, err := skim(encoded)
	if err != nil || string(r.nonce) != "nonce-7" || r.resources != 3 {
		t.Errorf("%d resources, nonce %q, %v", r.resources, r.nonce, err)
	}
	if _, err := skim(encoded[:len(encoded)-3]); err == nil {
		t.Error("a response that is cut off was read")
	}
}

// TestAcknowledgementsAreThoseOfEnvoy: with the nonce and, for the state of the world, the
// version and all names.
func TestAcknowledgementsAreThoseOfEnvoy(t *testing.T) {
	for _, delta := range []bool{true, false} {
		a := &audience{delta: delta, names: []string{"a", "b"}}
		if err := a.encode(); err != nil {
			t.Fatal(err)
		}
		checkAcknowledgement(t, delta, a.acknowledge(response{version: []byte("5"), nonce: []byte("7")}))
	}
}

func TestExponent(t *testing.T) {
	sizes := []int{10, 100, 1000}
	for want, values := range map[float64][]float64{0: {5, 5, 5}, 1: {1, 10, 100}, 2: {3, 300, 30_000}} {
		if got := exponent(sizes, values); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v grows with the power %v, want %v", values, got, want)
		}
	}
}
