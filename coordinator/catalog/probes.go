package catalog

import (
	"hdsd/hds/specifier"
	"hdsd/health"
)

// ChangedProbes tells which endpoints of after, by index, checkers are sent
// differently than of before, so that they take them for new ones. It returns nil
// if there are none. It is exact: a checker reports again only what has changed.
func ChangedProbes(before, after *Cluster) []bool {
	if before == nil || before.Checked == nil || after.Checked == nil {
		return nil
	}
	same := specifier.Comparer(before.Checked, after.Checked)
	earlier := make(map[health.Hash]int, len(before.Hashes))
	for i, hash := range before.Hashes {
		earlier[hash] = i
	}
	var changed []bool
	for i, hash := range after.Hashes {
		at, ok := earlier[hash]
		if !ok || same(at, i) { // it is new, or as before
			continue
		}
		if changed == nil {
			changed = make([]bool, len(after.Hashes))
		}
		changed[i] = true
	}
	return changed
}
