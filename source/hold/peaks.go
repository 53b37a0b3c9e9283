package hold

import "time"

// slots is into how many parts the time of a rule is cut, to remember how large a source
// was.
const slots = 60

// peaks remembers how large a source was lately, so that small losses add up. The zero
// value remembers nothing.
type peaks struct {
	base                time.Time // when the first slot begins
	clusters, endpoints falls
	by                  map[string]falls // endpoints, by cluster
}

// falls are the sizes from which something became smaller, the largest first.
type falls []fall

// fall says until when a size was in use.
type fall struct {
	size int
	slot int64
}

// slot numbers the part of time that now is in.
func (p *peaks) slot(now time.Time, rule Rule) int64 {
	if p.base.IsZero() {
		p.base, p.by = now, map[string]falls{}
	}
	return int64(now.Sub(p.base) / max(rule.For/slots, 1))
}

// note records that something has shrunk.
func (f *falls) note(slot int64, was, is int) {
	if is >= was {
		return
	}
	list := *f
	for len(list) > 0 && list[len(list)-1].size <= was {
		list = list[:len(list)-1]
	}
	if n := len(list); n > 0 && list[n-1].slot == slot {
		return // a larger size in the same slot
	}
	*f = append(list, fall{was, slot})
}

// largest returns the largest recent size, the present one included.
func (f *falls) largest(slot int64, is int) int {
	list := *f
	for len(list) > 0 && slot-list[0].slot > slots {
		list = list[1:]
	}
	if *f = list; len(list) > 0 {
		return max(is, list[0].size)
	}
	return is
}

// note records what has shrunk. was has the earlier sizes of the clusters that changed.
func (p *peaks) note(slot int64, before, after *counts, was map[string]size) {
	p.clusters.note(slot, before.clusters, after.clusters)
	p.endpoints.note(slot, before.endpoints, after.endpoints)
	for name, old := range was {
		is, there := after.by[name]
		list := p.by[name]
		if list.note(slot, old.endpoints, is.endpoints); there && len(list) > 0 {
			p.by[name] = list
		} else {
			delete(p.by, name)
		}
	}
}

// forget drops the sizes of the source and of one cluster, whose loss was accepted.
func (p *peaks) forget(cluster string) {
	p.clusters, p.endpoints = nil, nil
	delete(p.by, cluster)
}
