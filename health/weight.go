package health

import "slices"

// mostOfMedian is how many times the median weight a checker's own claim may be.
const mostOfMedian = 4

// MostWeight returns the highest weight that a checker may claim in a fleet whose
// checkers claim the given weights. It is 4 times their median; a claim of 0 counts
// as 1.
func MostWeight(claims []float64) float64 {
	if len(claims) == 0 {
		return mostOfMedian
	}
	all := slices.Clone(claims)
	for i, claim := range all {
		if claim == 0 {
			all[i] = 1
		}
	}
	slices.Sort(all)
	return mostOfMedian * all[(len(all)-1)/2] // the lower of two
}
