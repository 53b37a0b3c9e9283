package hold

import "time"

// slots is the number of parts of a rule's time in the record of sizes.
const slots = 60

// peaks remembers recent sizes of a source, so that small losses add up. The zero value
// remembers nothing.
type peaks struct {
	base                time.Time // start of the first slot
	clusters, endpoints falls
	byCluster           map[string]falls // endpoints, by cluster
}

// falls are the sizes before decreases, the largest first.
type falls []fall

// fall is a size and the end of its use.
type fall struct {
	size int
	slot int64
}

// slot returns the number of the slot of now.
func (p *peaks) slot(now time.Time, rule Rule) int64 {
	if p.base.IsZero() {
		p.base, p.byCluster = now, map[string]falls{}
	}
	return int64(now.Sub(p.base) / max(rule.For/slots, 1))
}

// note records a decrease.
func (f *falls) note(slot int64, previous, current int) {
	if current >= previous {
		return
	}
	list := *f
	for len(list) > 0 && list[len(list)-1].size <= previous {
		list = list[:len(list)-1]
	}
	if n := len(list); n > 0 && list[n-1].slot == slot {
		return // a larger size in the same slot
	}
	*f = append(list, fall{previous, slot})
}

// largest returns the largest recent size, the present one included.
func (f *falls) largest(slot int64, current int) int {
	list := *f
	for len(list) > 0 && slot-list[0].slot > slots {
		list = list[1:]
	}
	if *f = list; len(list) > 0 {
		return max(current, list[0].size)
	}
	return current
}

// note records decreases. previous has the earlier sizes of changed clusters.
func (p *peaks) note(slot int64, before, after *counts, previous map[string]size) {
	p.clusters.note(slot, before.clusters, after.clusters)
	p.endpoints.note(slot, before.endpoints, after.endpoints)
	for name, old := range previous {
		current, ok := after.byCluster[name]
		list := p.byCluster[name]
		if list.note(slot, old.endpoints, current.endpoints); ok && len(list) > 0 {
			p.byCluster[name] = list
		} else {
			delete(p.byCluster, name)
		}
	}
}

// forget drops the sizes of the source and of one cluster, whose loss was accepted.
func (p *peaks) forget(cluster string) {
	p.clusters, p.endpoints = nil, nil
	delete(p.byCluster, cluster)
}
