package simulate

import (
	"cmp"
	"slices"
)

// Spread sums up some values.
type Spread struct {
	Min       float64 `json:"min"`
	Median    float64 `json:"median"` // the lower one of two
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	MaxToMean float64 `json:"maxToMean"` // 0 if the mean is
}

// weighed is a value that occurs some times.
type weighed struct {
	value float64
	times int
}

func spreadOf(values []weighed) Spread {
	values = slices.DeleteFunc(values, func(v weighed) bool { return v.times <= 0 })
	if len(values) == 0 {
		return Spread{}
	}
	slices.SortFunc(values, func(a, b weighed) int { return cmp.Compare(a.value, b.value) })
	count, sum := 0, 0.0
	for _, v := range values {
		count += v.times
		sum += v.value * float64(v.times)
	}
	s := Spread{Min: values[0].value, Max: values[len(values)-1].value, Mean: sum / float64(count)}
	before := 0
	for _, v := range values {
		if before += v.times; before > (count-1)/2 {
			s.Median = v.value
			break
		}
	}
	if s.Mean > 0 {
		s.MaxToMean = s.Max / s.Mean
	}
	return s
}
