package aggregate

// pool numbers the keys in use and keeps a value for each. A number is free again
// when its key has no user.
type pool[K comparable, V any] struct {
	numbers map[K]uint32
	entries []pooled[K, V]
	free    []uint32
	last    uint32 // the latest number used, which is often used again
}

type pooled[K comparable, V any] struct {
	key   K
	value V
	uses  int
}

// use adds a user of a key and reports whether it is the first.
func (p *pool[K, V]) use(key K) (number uint32, first bool) {
	if int(p.last) < len(p.entries) && p.entries[p.last].uses > 0 && p.entries[p.last].key == key {
		p.entries[p.last].uses++
		return p.last, false
	}
	number, ok := p.numbers[key]
	switch {
	case ok:
	case len(p.free) > 0:
		number, p.free = p.free[len(p.free)-1], p.free[:len(p.free)-1]
	default:
		number = uint32(len(p.entries))
		p.entries = append(p.entries, pooled[K, V]{})
	}
	if !ok {
		if p.numbers == nil {
			p.numbers = map[K]uint32{}
		}
		p.numbers[key], p.entries[number].key = number, key
	}
	p.entries[number].uses++
	p.last = number
	return number, !ok
}

// drop removes a user and reports whether it was the last.
func (p *pool[K, V]) drop(number uint32) bool {
	x := &p.entries[number]
	if x.uses--; x.uses > 0 {
		return false
	}
	delete(p.numbers, x.key)
	*x = pooled[K, V]{}
	p.free = append(p.free, number)
	return true
}

// len is greater than every number in use.
func (p *pool[K, V]) len() int { return len(p.entries) }

func (p *pool[K, V]) key(number uint32) K { return p.entries[number].key }

func (p *pool[K, V]) get(number uint32) *V { return &p.entries[number].value }
