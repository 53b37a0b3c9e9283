package aggregate

import (
	"fmt"
	"maps"
	"slices"

	"hdsd/health"
)

// DoubtChange reports that a checker or a path is doubted from now on, or is
// believed again.
type DoubtChange struct {
	Checker  string // empty where a path is meant
	From, To string // zones of the path's checkers and endpoints, as "region/zone"; from "elsewhere" are all others
	Doubted  bool
	Reason   string // as "it disagrees with its peers on 41 % of its endpoints"
}

func (r *record) aboutChecker(d *Doubt) string {
	if r.share() < d.Release {
		return "it disagreed with its peers until lately"
	}
	return fmt.Sprintf("it disagrees with its peers on %.0f %% of its endpoints", 100*r.share())
}

func (a *Aggregator) aboutPath(p path) string {
	text := fmt.Sprintf("the path from zone %s to zone %s is doubted: ", a.nameOf(p), a.zones.name(p.to))
	if p.from == elsewhere {
		text = fmt.Sprintf("the way from elsewhere to zone %s is doubted: ", a.zones.name(p.to))
	}
	if share := a.paths[p].share(); share >= a.doubt(p.class).Release {
		return text + fmt.Sprintf("others contradict %.0f %% of what is said over it", 100*share)
	}
	return text + "others contradicted what was said over it until lately"
}

// DoubtReason tells why a checker is not believed by what its peers say; empty
// where it is.
func (a *Aggregator) DoubtReason(checker string) string {
	c, ok := a.checkers.ids[checker]
	if !ok {
		return ""
	}
	for class := range a.checkers.all[c].classes() {
		if r := &a.checkers.all[c].in(uint32(class)).record; r.doubted {
			d := a.doubt(uint32(class))
			return r.aboutChecker(&d)
		}
	}
	return ""
}

// CutPaths gives the paths from a zone of checkers that are doubted, by where they
// lead: to each zone one, which is from elsewhere only where the zone's own is
// not doubted.
func (a *Aggregator) CutPaths(from health.Locality) []DoubtChange {
	number := a.zones.numbers[zone{from.Region, from.Zone}]
	if a.cuts == 0 || number == 0 {
		return nil
	}
	cut := map[uint32]path{} // by where it leads
	for _, p := range slices.SortedFunc(maps.Keys(a.paths), path.compare) {
		if !p.includes(number) || !a.paths[p].doubted {
			continue
		}
		if before, ok := cut[p.to]; !ok || before.from == elsewhere && p.from != elsewhere {
			cut[p.to] = p
		}
	}
	var found []DoubtChange
	for _, to := range slices.Sorted(maps.Keys(cut)) {
		found = append(found, a.doubtChange(cut[to], true))
	}
	return found
}

func (a *Aggregator) doubtChange(p path, doubted bool) DoubtChange {
	return DoubtChange{From: a.nameOf(p), To: a.zones.name(p.to).String(), Doubted: doubted, Reason: a.aboutPath(p)}
}

func (a *Aggregator) nameOf(p path) string {
	if p.from == elsewhere {
		return "elsewhere"
	}
	return a.zones.name(p.from).String()
}
