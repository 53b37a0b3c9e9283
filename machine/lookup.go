package machine

import (
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/log"
)

// lookup implements the lookup interfaces of the rooms.
type lookup struct{ m *Machine }

// Standing implements fleet.Lookup.
func (l lookup) Standing(checker string) fleet.Standing {
	switch {
	case l.m.Trust[checker].Level == log.Distrusted:
		return fleet.Distrusted
	case l.m.Aggregator.DoubtReason(checker) != "":
		return fleet.Doubted
	case l.m.Aggregator.BlindReason(checker) != "":
		return fleet.Blind
	}
	return fleet.Believed
}

// Believes implements fleet.Lookup.
func (l lookup) Believes(id health.EndpointID, checker string) bool {
	return l.m.Aggregator.Believes(id, checker)
}

// Compare implements fleet.Lookup.
func (l lookup) Compare(id health.EndpointID, checker string) fleet.Comparison {
	up, ok := l.m.Aggregator.Majority(id)
	if !ok {
		return fleet.Alone
	}
	return l.compare(id, checker, up)
}

// CompareVerdict implements fleet.Lookup.
func (l lookup) CompareVerdict(id health.EndpointID, checker string) fleet.Comparison {
	status := l.m.Aggregator.Verdict(id).Status
	if !status.Up() && !status.Down() {
		return fleet.Alone
	}
	return l.compare(id, checker, status.Up())
}

// compare compares the vote of a checker on probation with a status.
func (l lookup) compare(id health.EndpointID, checker string, up bool) fleet.Comparison {
	vote, voted := l.m.Newcomers.Of(checker, id)
	switch {
	case !voted || !vote.Status.Up() && !vote.Status.Down():
		return fleet.Unreported
	case vote.Status.Up() == up:
		return fleet.Same
	}
	return fleet.Opposite
}

// Endpoint implements rollout.Lookup.
func (l lookup) Endpoint(id health.EndpointID) (*catalog.Cluster, int) { return l.m.Rulings.At(id) }

// ID implements rollout.Lookup.
func (l lookup) ID(hash health.Hash) health.EndpointID {
	id, _ := l.m.Rulings.Find(hash)
	return id
}

// Connected implements rollout.Lookup.
func (l lookup) Connected(checker string) bool { return l.m.Fleet.Connected(checker) }

// OnProbation implements rollout.Lookup.
func (l lookup) OnProbation(checker string) bool { return l.m.Fleet.OnProbation(checker) }

// CanCheck implements fleet.Lookup.
func (l lookup) CanCheck(k *health.Checker, id health.EndpointID) bool {
	cluster, index := l.m.Rulings.At(id)
	return cluster != nil && index != catalog.None && !l.m.Targets.Waits(cluster.Hashes[index]) &&
		k.Abilities.Has(cluster.Checked.Needs...) && cluster.Reach.Includes(k) &&
		placementAllows(cluster, *cluster.Checked.LocalityOf(index), k.Locality)
}

// placementAllows reports whether the placement of a cluster lets a checker in one locality check an
// endpoint in another.
func placementAllows(k *catalog.Cluster, endpoint, checker health.Locality) bool {
	if endpoint.Region == "" && endpoint.Zone == "" {
		return true
	}
	sameRegion := endpoint.Region == checker.Region
	return (k.Regions != assign.OwnOnly || sameRegion) && (k.Zones != assign.OwnOnly || sameRegion && endpoint.Zone == checker.Zone)
}
