package ruling

// Republished returns a decision that publishes everything, as after a restart.
func (t *Table) Republished() Decision { return t.republished() }
