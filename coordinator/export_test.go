package coordinator

import "context"

// WithoutSpareChanges lets endpoints change no more often than each one's own share.
func (c *Coordinator) WithoutSpareChanges(ctx context.Context) error {
	return c.core.inspect(ctx, func() { c.core.Rulings.Spare = 0 })
}
