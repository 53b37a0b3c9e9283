package hold

import "time"

// slots is into how many parts the time of a rule is cut, to remember how large a source
// was.
const slots = 60

// peaks knows how large a source was lately, so that what goes away little by little adds
// up. The zero value knows nothing.
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

// note notes that something is smaller than it was.
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

// largest returns the largest size of late, or the present one.
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

// note notes what has become smaller. was is what the clusters that have changed were.
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

// forget forgets how large the source and a cluster were: that they are smaller was
// accepted.
func (p *peaks) forget(cluster string) {
	p.clusters, p.endpoints = nil, nil
	delete(p.by, cluster)
}
