package feed

import (
	"context"
	"net/netip"

	"hdsd/coordinator/catalog"
	"hdsd/health"
	"hdsd/source/names"
)

// Condition is what hdsd holds to be true of an endpoint.
type Condition struct {
	Status health.Status
	Voted  bool // there are votes that count
}

// standing returns what it means for an address that DNS gives no longer.
func (c Condition) standing() names.Standing {
	switch {
	case c.Status.Up() && c.Voted:
		return names.Healthy
	case c.Status.Up(), c.Status == health.Unknown:
		return names.Unjudged
	}
	return names.Down
}

// standings tells what is known of addresses of a name: the best of what hdsd holds to be
// true of their endpoints in the clusters that have the name.
func (f *Feed) standings(ctx context.Context, q names.Question, addresses []netip.Addr) map[netip.Addr]names.Standing {
	checked, hosts := f.intake.checkedAt(q, addresses)
	if len(checked) == 0 {
		return nil
	}
	var conditions []Condition
	if f.options.Conditions != nil {
		conditions = f.options.Conditions(ctx, checked)
	}
	all := make(map[netip.Addr]names.Standing, len(addresses))
	for i, address := range hosts {
		standing := names.Unjudged
		if conditions != nil {
			standing = conditions[i].standing()
		}
		all[address] = max(all[address], standing)
	}
	return all
}

// checkedAt returns the checked endpoints with one of the addresses in the clusters that have
// a name, and the address of each.
func (in *Intake) checkedAt(q names.Question, addresses []netip.Addr) (all []*catalog.Endpoint, hosts []netip.Addr) {
	for _, k := range in.named(q) {
		for _, address := range addresses {
			for _, e := range k.At(address) {
				all, hosts = append(all, e), append(hosts, address)
			}
		}
	}
	return all, hosts
}

// named returns the checked clusters that have a name.
func (in *Intake) named(q names.Question) (all []*catalog.Cluster) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, resolving := range in.dns.by {
		for _, cluster := range resolving.clusters[q] {
			if k := in.prepared[cluster]; k != nil && k.Source.Source == name && k.IsChecked() {
				all = append(all, k)
			}
		}
	}
	return all
}
