package simulate

import (
	"cmp"
	"slices"

	"hdsd/assign"
	"hdsd/health"
)

// lose makes checkers give up their seats, counts the consequences, and restores them.
func (s *Simulation) lose(checkers []health.Checker) Loss {
	before := s.planner.Stats()
	lost := make(map[string]bool, len(checkers))
	ids := make([]string, len(checkers))
	for i, k := range checkers {
		ids[i], lost[k.ID] = k.ID, true
	}
	var loss Loss
	for _, move := range s.planner.Apply(assign.Change{Leave: ids}).Moves {
		if !lost[move.Checker] {
			loss.Moved += len(move.Add)
			loss.Told++
		}
	}
	after := s.planner.Stats()
	loss.Busiest = after.MaxLoad
	loss.NotChecked = after.Uncheckable - before.Uncheckable
	loss.Dropped = before.Checks - after.Checks
	for _, k := range s.input.Checkers {
		loss.ChecksPerSecond = max(loss.ChecksPerSecond, perSecond(s.planner.Checker(k.ID).Rate))
	}
	s.planner.Apply(assign.Change{Join: checkers})
	return loss
}

// loseCheckers tries the loss of each checker, up to limit.
func (s *Simulation) loseCheckers(limit int) Losses {
	checkers := s.input.Checkers
	tried := min(len(checkers), limit)
	sum := Losses{Tried: tried}
	if tried == 0 {
		return sum
	}
	losses := make([]Loss, tried)
	moved, dropped := 0, 0
	for i := range losses {
		index := i * len(checkers) / tried
		loss := s.lose(checkers[index : index+1])
		losses[i] = loss
		if loss.Moved > moved {
			moved, sum.Costliest = loss.Moved, checkers[index].ID
		}
		if loss.Fits() {
			sum.Fit++
		} else if loss.Dropped > dropped {
			dropped, sum.Missed = loss.Dropped, checkers[index].ID
		}
	}
	sum.Median, sum.Worst = inOrder(losses, (tried-1)/2), inOrder(losses, tried-1)
	return sum
}

// inOrder returns, for each figure alone, the value at a place in the sorted losses.
func inOrder(losses []Loss, place int) Loss {
	return Loss{
		Moved:           nth(losses, place, func(l Loss) int { return l.Moved }),
		Told:            nth(losses, place, func(l Loss) int { return l.Told }),
		Busiest:         nth(losses, place, func(l Loss) int { return l.Busiest }),
		ChecksPerSecond: nth(losses, place, func(l Loss) float64 { return l.ChecksPerSecond }),
		NotChecked:      nth(losses, place, func(l Loss) int { return l.NotChecked }),
		Dropped:         nth(losses, place, func(l Loss) int { return l.Dropped }),
	}
}

func nth[T cmp.Ordered](losses []Loss, place int, value func(Loss) T) T {
	values := make([]T, len(losses))
	for i, loss := range losses {
		values[i] = value(loss)
	}
	slices.Sort(values)
	return values[place]
}

// zone is a zone of a region.
type zone struct{ region, name string }

// loseZones tries the loss of each zone, up to limit. It also returns the number of zones.
func (s *Simulation) loseZones(limit int) (int, []ZoneLoss) {
	byZone := map[zone][]health.Checker{}
	var zones []zone
	for _, k := range s.input.Checkers {
		z := zone{k.Locality.Region, k.Locality.Zone}
		if byZone[z] == nil {
			zones = append(zones, z)
		}
		byZone[z] = append(byZone[z], k)
	}
	slices.SortFunc(zones, func(a, b zone) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name))
	})
	losses := make([]ZoneLoss, min(len(zones), limit))
	for i := range losses {
		z := zones[i*len(zones)/len(losses)]
		losses[i] = ZoneLoss{z.region, z.name, len(byZone[z]), s.lose(byZone[z])}
	}
	return len(zones), losses
}
