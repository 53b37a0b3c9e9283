package store

var givenBack = []byte("given-back")

// SaveGivenBack stores which clusters data planes check again, since no checker is able to check
// them, by name; false deletes a row. Others stay as they are. It does not wait for the disk.
func (s *Store) SaveGivenBack(changed map[string]bool) {
	rows := make(map[string][]byte, len(changed))
	for name, back := range changed {
		key := rowKey(hashOf(name))
		if rows[key] = nil; back {
			rows[key] = []byte(name)
		}
	}
	s.intake.put(givenBack, rows)
}

func (r stateReader) givenBack() map[string]bool {
	var all map[string]bool
	r.damage.each(r.tx, givenBack, func(_, name []byte) bool {
		if all == nil {
			all = map[string]bool{}
		}
		all[string(name)] = true
		return true
	})
	return all
}
