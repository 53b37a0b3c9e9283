package store

var givenBack = []byte("given-back")

// saveGivenBack stores which clusters data planes check again because no checker can, by name;
// false deletes a row. Other rows stay. It does not wait for the disk.
func (in *intake) saveGivenBack(changed map[string]bool) {
	rows := make(map[string][]byte, len(changed))
	for name, back := range changed {
		key := rowKey(hashOf(name))
		if rows[key] = nil; back {
			rows[key] = []byte(name)
		}
	}
	in.put(givenBack, rows)
}

func (r stateReader) givenBack() map[string]bool {
	var clusters map[string]bool
	r.damage.forEach(r.tx, givenBack, func(_, name []byte) bool {
		if clusters == nil {
			clusters = map[string]bool{}
		}
		clusters[string(name)] = true
		return true
	})
	return clusters
}
