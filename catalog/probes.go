package catalog

import (
	"hdsd/envoy/specifier"
	"hdsd/health"
)

// ChangedProbes reports, by index, which endpoints of next go to checkers differently from
// previous, so that checkers treat them as new. It returns nil if there are none. It is exact:
// a checker reports only changed endpoints again.
func ChangedProbes(previous, next *Cluster) []bool {
	if previous == nil || previous.Checked == nil || next.Checked == nil {
		return nil
	}
	isSame := specifier.Comparer(previous.Checked, next.Checked)
	earlier := make(map[health.Hash]int, len(previous.Hashes))
	for i, hash := range previous.Hashes {
		earlier[hash] = i
	}
	var changed []bool
	for i, hash := range next.Hashes {
		index, ok := earlier[hash]
		if !ok || isSame(index, i) { // new, or unchanged
			continue
		}
		if changed == nil {
			changed = make([]bool, len(next.Hashes))
		}
		changed[i] = true
	}
	return changed
}
