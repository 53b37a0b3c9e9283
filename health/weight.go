package health

import "slices"

// mostOfMedian bounds a checker's claimed weight, in median weights.
const mostOfMedian = 4

// MostWeight returns the highest weight that a checker may claim in a fleet whose
// checkers claim the given weights. It is 4 times their median; a claim of 0 counts
// as 1.
func MostWeight(claims []float64) float64 {
	if len(claims) == 0 {
		return mostOfMedian
	}
	sorted := slices.Clone(claims)
	for i, claim := range sorted {
		if claim == 0 {
			sorted[i] = 1
		}
	}
	slices.Sort(sorted)
	return mostOfMedian * sorted[(len(sorted)-1)/2] // the lower of two
}
