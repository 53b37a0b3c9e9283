package simulate

import (
	"cmp"
	"slices"

	"hdsd/assign"
	"hdsd/health"
)

// lose makes checkers give up their seats, counts what follows, and takes them back.
func (s *Simulation) lose(checkers []health.Checker) Loss {
	before := s.planner.Stats()
	gone := make(map[string]bool, len(checkers))
	ids := make([]string, len(checkers))
	for i, k := range checkers {
		ids[i], gone[k.ID] = k.ID, true
	}
	var loss Loss
	for _, move := range s.planner.Apply(assign.Change{Leave: ids}).Moves {
		if !gone[move.Checker] {
			loss.Moved += len(move.Add)
			loss.Told++
		}
	}
	after := s.planner.Stats()
	loss.Busiest = after.MaxLoad
	loss.NotChecked = after.Uncheckable - before.Uncheckable
	loss.Dropped = before.Checks - after.Checks
	for _, k := range s.in.Checkers {
		loss.ChecksPerSecond = max(loss.ChecksPerSecond, perSecond(s.planner.Checker(k.ID).Rate))
	}
	s.planner.Apply(assign.Change{Join: checkers})
	return loss
}

// loseCheckers tries the loss of each checker, of so many at most.
func (s *Simulation) loseCheckers(most int) Losses {
	all := s.in.Checkers
	tried := min(len(all), most)
	sum := Losses{Tried: tried}
	if tried == 0 {
		return sum
	}
	losses := make([]Loss, tried)
	moved, dropped := 0, 0
	for i := range losses {
		at := i * len(all) / tried
		loss := s.lose(all[at : at+1])
		losses[i] = loss
		if loss.Moved > moved {
			moved, sum.Costliest = loss.Moved, all[at].ID
		}
		if loss.Fits() {
			sum.Fit++
		} else if loss.Dropped > dropped {
			dropped, sum.Missed = loss.Dropped, all[at].ID
		}
	}
	sum.Median, sum.Worst = inOrder(losses, (tried-1)/2), inOrder(losses, tried-1)
	return sum
}

// inOrder returns what comes at a place when losses are in order, for each figure
// alone.
func inOrder(losses []Loss, place int) Loss {
	return Loss{
		Moved:           at(losses, place, func(l Loss) int { return l.Moved }),
		Told:            at(losses, place, func(l Loss) int { return l.Told }),
		Busiest:         at(losses, place, func(l Loss) int { return l.Busiest }),
		ChecksPerSecond: at(losses, place, func(l Loss) float64 { return l.ChecksPerSecond }),
		NotChecked:      at(losses, place, func(l Loss) int { return l.NotChecked }),
		Dropped:         at(losses, place, func(l Loss) int { return l.Dropped }),
	}
}

func at[T cmp.Ordered](losses []Loss, place int, of func(Loss) T) T {
	values := make([]T, len(losses))
	for i, loss := range losses {
		values[i] = of(loss)
	}
	slices.Sort(values)
	return values[place]
}

// zone is a zone of a region.
type zone struct{ region, name string }

// loseZones tries the loss of each zone, of so many at most. It also returns how many
// zones there are.
func (s *Simulation) loseZones(most int) (int, []ZoneLoss) {
	in := map[zone][]health.Checker{}
	var zones []zone
	for _, k := range s.in.Checkers {
		z := zone{k.Locality.Region, k.Locality.Zone}
		if in[z] == nil {
			zones = append(zones, z)
		}
		in[z] = append(in[z], k)
	}
	slices.SortFunc(zones, func(a, b zone) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name))
	})
	losses := make([]ZoneLoss, min(len(zones), most))
	for i := range losses {
		z := zones[i*len(zones)/len(losses)]
		losses[i] = ZoneLoss{z.region, z.name, len(in[z]), s.lose(in[z])}
	}
	return len(zones), losses
}
