package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// lab is what scenarios run in.
type lab struct {
	dir   string // for files of this run
	turns int
	lives int // turns where each has a fleet of its own

	binary string // hdsd as it is now
}

// contender is one that takes turns.
type contender struct {
	name  string
	turn  func() ([]float64, error) // a value for each figure of the scenario; NaN: it has none
	close func()
}

// figure is what a scenario measures of each contender.
type figure struct {
	name, unit string
	floor      string  // the contender that hdsd is compared with; "": none
	mark       float64 // of the ratio, or of the value where there is no floor; 0: none
	itself     bool    // the mark is of the value, although there is a floor
	beyond     string  // the mark is of what the value is more than that of this contender; "": it is not
}

// scenario is one piece of work. A new one is made for each run.
type scenario interface {
	name() string
	figures() []figure
	hdsd(l *lab, binary string) (*contender, error)
	others(l *lab) ([]*contender, error) // floors and peers; called after hdsd
	turns(l *lab) int
}

// outcome is what came of a scenario.
type outcome struct {
	name    string
	figures []figure
	names   []string               // of contenders, in order
	values  map[string][][]float64 // of a contender, by figure, by turn
}

// spread is the median of several values, the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + median) / 2
	}
	return spread{median: median, low: sorted[0], high: sorted[len(sorted)-1]}
}

// quantile is a share of the values at most.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// value is that of a contender.
func (o *outcome) value(of string, figure int) spread { return spreadOf(o.values[of][figure]) }

// difference is how much more one contender has than another, turn by turn.
func (o *outcome) difference(of, than string, figure int) spread {
	var each []float64
	for i, v := range o.values[of][figure] {
		if other := o.values[than]; other != nil && i < len(other[figure]) {
			each = append(each, v-other[figure][i])
		}
	}
	return spreadOf(each)
}

// ratio is that of two contenders, turn by turn.
func (o *outcome) ratio(of, to string, figure int) spread {
	var each []float64
	for i, v := range o.values[of][figure] {
		if other := o.values[to]; other != nil && i < len(other[figure]) && other[figure][i] > 0 {
			each = append(each, v/other[figure][i])
		}
	}
	return spreadOf(each)
}

// The names of hdsd where there are two.
const ours, base = "hdsd", "base"

// run has the contenders of a scenario take turns. With a base, only the two revisions do.
func run(l *lab, s scenario, binary, baseBinary string) (*outcome, error) {
	var all []*contender
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	add := func(name, binary string) error {
		c, err := s.hdsd(l, binary)
		if err == nil {
			c.name = name
			all = append(all, c)
		}
		return err
	}
	err := add(ours, binary)
	if err == nil && baseBinary != "" {
		err = add(base, baseBinary)
	} else if err == nil {
		var others []*contender
		others, err = s.others(l)
		all = append(all, others...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(), err)
	}
	return alternate(s, all, s.turns(l))
}

// alternate has the order change from turn to turn, so that nobody is always the first.
func alternate(s scenario, all []*contender, turns int) (*outcome, error) {
	o := &outcome{name: s.name(), figures: s.figures(), values: map[string][][]float64{}}
	for _, c := range all {
		o.names = append(o.names, c.name)
		o.values[c.name] = make([][]float64, len(o.figures))
	}
	order := slices.Clone(all)
	warm := min(1, turns-1) // so many turns before do not count
	for turn := range turns + warm {
		for _, c := range order {
			values, err := c.turn()
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.name(), c.name, err)
			}
			for i, v := range values {
				if turn < warm || math.IsNaN(v) {
					continue
				}
				o.values[c.name][i] = append(o.values[c.name][i], v)
			}
		}
		slices.Reverse(order)
	}
	return o, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
