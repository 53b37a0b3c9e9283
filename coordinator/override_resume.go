package coordinator

import "hdsd/health"

// votesBefore gives what the votes had come to on an endpoint when hdsd stopped,
// and whether that was under an override.
func (c *core) votesBefore(hash health.Hash) (last health.Verdict, known, overridden bool) {
	if voted, ok := c.voted[hash]; ok {
		delete(c.voted, hash)
		return voted, voted.Status != health.Unknown || !voted.Since.IsZero(), true
	}
	held, known := c.last[hash]
	if held.Status == health.Draining { // which no votes come to
		return health.Verdict{}, false, true
	}
	return held.Verdict, known, false
}

// resumeRuling sees who decides a new endpoint, and what that changes since hdsd
// stopped.
func (c *core) resumeRuling(id health.EndpointID, shown health.Verdict, was bool, e *edit) {
	o := c.overrides.of(c.table.rows[id].key())
	switch {
	case o == nil && !was:
		return
	case o != nil && was && o.Status == shown.Status:
		c.table.rule(id, &ruling{o, shown.Since})
		return
	}
	c.table.rule(id, &ruling{o, e.now})
	e.effects = append(e.effects, effect{id: id, from: shown.Status})
}

// forgetVoted lets go of what the votes came to on endpoints that are gone.
func (c *core) forgetVoted() {
	if len(c.voted) == 0 {
		return
	}
	gone := make(map[health.Hash]*health.Verdict, len(c.voted))
	for hash := range c.voted {
		if _, hidden := c.last[hash]; !hidden {
			delete(c.voted, hash)
			gone[hash] = nil
		}
	}
	c.history.SaveVoted(gone)
}
