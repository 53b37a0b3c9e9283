package coordinator

import "context"

// WithoutSpareChanges lets endpoints change no more often than each one's own share.
func (c *Coordinator) WithoutSpareChanges(ctx context.Context) error {
	return c.core.ask(ctx, func() { c.core.rulings.Spare = 0 })
}
