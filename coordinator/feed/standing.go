package feed

import (
	"context"
	"net/netip"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/source/names"
)

// Condition is the condition of an endpoint.
type Condition struct {
	Status health.Status
	Voted  bool // there are votes that count
}

// standing returns the standing of an address that DNS does not list any more.
func (c Condition) standing() names.Standing {
	switch {
	case c.Status.Up() && c.Voted:
		return names.Healthy
	case c.Status.Up(), c.Status == health.Unknown:
		return names.Unjudged
	}
	return names.Down
}

// standings returns the standing of addresses of a name: the best condition of their endpoints
// in the clusters with the name.
func (f *Feed) standings(ctx context.Context, q names.Question, addresses []netip.Addr) map[netip.Addr]names.Standing {
	checked, hosts := f.intake.checkedAt(q, addresses)
	if len(checked) == 0 {
		return nil
	}
	var conditions []Condition
	if f.options.Conditions != nil {
		conditions = f.options.Conditions(ctx, checked)
	}
	found := make(map[netip.Addr]names.Standing, len(addresses))
	for i, address := range hosts {
		standing := names.Unjudged
		if conditions != nil {
			standing = conditions[i].standing()
		}
		found[address] = max(found[address], standing)
	}
	return found
}

// checkedAt returns the checked endpoints with one of the addresses in the clusters with a
// name, and the address of each.
func (in *Intake) checkedAt(q names.Question, addresses []netip.Addr) (endpoints []*catalog.Endpoint, hosts []netip.Addr) {
	for _, k := range in.named(q) {
		for _, address := range addresses {
			for _, e := range k.At(address) {
				endpoints, hosts = append(endpoints, e), append(hosts, address)
			}
		}
	}
	return endpoints, hosts
}

// named returns the checked clusters with a name.
func (in *Intake) named(q names.Question) (clusters []*catalog.Cluster) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, resolving := range in.dns.bySource {
		for _, cluster := range resolving.clusters[q] {
			if k := in.prepared[cluster]; k != nil && k.Source.Source == name && k.IsChecked() {
				clusters = append(clusters, k)
			}
		}
	}
	return clusters
}
