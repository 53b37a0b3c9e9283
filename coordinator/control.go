package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/machine"
	"hdsd/notify/send"
	"hdsd/store"
)

// control carries out the orders of operators. An order takes effect before it is on disk, since a failing disk
// must not keep hdsd publishing.
type control struct {
	core  *core
	store *store.Store
	feed  *feed.Feed
	hub   *send.Hub

	replicas *replicas // nil: this coordinator is alone
	*backups
}

// diskPatience is the time for which operators wait for a disk that hangs.
const diskPatience = 3 * time.Second

// carryOut lets the core handle an order, which may be nil; replicas carry it out in common. Then it calls record on the goroutine of the core,
// with the time of the order, and waits for the disk. The function record adds the audit entry, or returns
// the reason of a refusal. If the disk fails, the error is an api.NotDurable that begins with the text
// unstored. After any other error, the caller must not read the outcome.
func (c *control) carryOut(ctx context.Context, unstored string, order machine.Event, record func(now time.Time) error) error {
	if c.core.replication != nil && order != nil {
		return c.core.order(ctx, order, record)
	}
	var refusal error
	if err := c.core.callThen(ctx, order, func(now time.Time) { refusal = record(now) }); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	if err := c.store.Durable(ctx); err != nil {
		return &api.NotDurable{Reason: fmt.Sprintf("%s: %v", unstored, err)}
	}
	return nil
}

// failed reports whether an error means that the change did not take effect.
func failed(err error) bool {
	_, inForce := errors.AsType[*api.NotDurable](err)
	return err != nil && !inForce
}
