package machine

import (
	"hdsd/assign"
	"hdsd/catalog"
	"hdsd/fleet"
	"hdsd/health"
	"hdsd/store"
)

// lookup answers what the rooms ask of each other.
type lookup struct{ m *Machine }

// Standing implements fleet.Lookup.
func (l lookup) Standing(checker string) fleet.Standing {
	switch {
	case l.m.Trust[checker].Level == store.Distrusted:
		return fleet.Distrusted
	case l.m.Judge.DoubtReason(checker) != "":
		return fleet.Doubted
	case l.m.Judge.BlindReason(checker) != "":
		return fleet.Blind
	}
	return fleet.Believed
}

// Believes implements fleet.Lookup.
func (l lookup) Believes(id health.EndpointID, checker string) bool {
	return l.m.Judge.Believes(id, checker)
}

// Compare implements fleet.Lookup.
func (l lookup) Compare(id health.EndpointID, checker string) fleet.Comparison {
	isUp, ok := l.m.Judge.Majority(id)
	if !ok {
		return fleet.Alone
	}
	return l.compare(id, checker, isUp)
}

// CompareVerdict implements fleet.Lookup.
func (l lookup) CompareVerdict(id health.EndpointID, checker string) fleet.Comparison {
	status := l.m.Judge.Verdict(id).Status
	if !status.Up() && !status.Down() {
		return fleet.Alone
	}
	return l.compare(id, checker, status.Up())
}

func (l lookup) compare(id health.EndpointID, checker string, isUp bool) fleet.Comparison {
	vote, voted := l.m.Newcomers.Of(checker, id)
	switch {
	case !voted || !vote.Status.Up() && !vote.Status.Down():
		return fleet.Unreported
	case vote.Status.Up() == isUp:
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
		mayBe(cluster, *cluster.Checked.LocalityOf(index), k.Locality)
}

// mayBe reports whether the placement of a cluster lets checkers of a zone check an
// endpoint of another.
func mayBe(k *catalog.Cluster, endpoint, checker health.Locality) bool {
	if endpoint.Region == "" && endpoint.Zone == "" {
		return true
	}
	sameRegion := endpoint.Region == checker.Region
	return (k.Regions != assign.OwnOnly || sameRegion) && (k.Zones != assign.OwnOnly || sameRegion && endpoint.Zone == checker.Zone)
}
