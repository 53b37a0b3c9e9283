package assign

import (
	"fmt"
	"testing"

	"hdsd/health"
)

// TestCohortsAreForgotten when nobody is in them any more.
func TestCohortsAreForgotten(t *testing.T) {
	p := New(Options{})
	for i := range 1000 {
		p.Apply(Change{Join: []health.Checker{{ID: fmt.Sprint(i % 4), Weight: 1 + float64(i)/1000}}})
	}
	if n := len(p.cohorts); n > 30 || len(p.cohortIDs) != n {
		t.Errorf("%d cohorts, %d of them known, of 4 checkers", n, len(p.cohortIDs))
	}
}
