package ruling

import "hdsd/ruling/decision"

// Republished returns a decision that publishes everything, as after a restart.
func (t *Table) Republished() decision.Decision { return t.republished() }
