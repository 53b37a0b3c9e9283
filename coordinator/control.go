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

// control does what operators ask for. That takes effect before it is on disk: a disk
// that fails is no reason to go on publishing.
type control struct {
	core  *core
	store *store.Store
	feed  *feed.Feed
	hub   *send.Hub
	*backups
}

// diskPatience is how long operators wait for a disk that answers with nothing, not even an error.
const diskPatience = 3 * time.Second

// carryOut has the core handle an order, unless it is nil, and waits until what that did is on disk. Then, at
// the time of the order, after runs on the core's goroutine: it records what was done, or returns why
// nothing was. If the disk does not take that, the error is an api.NotDurable that begins with the text
// unstored. After any other error, the caller must not read the outcome.
func (c *control) carryOut(ctx context.Context, unstored string, order machine.Event, after func(now time.Time) error) error {
	var refused error
	if err := c.core.askAnd(ctx, order, func(now time.Time) { refused = after(now) }); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	if err := c.store.Durable(ctx); err != nil {
		return &api.NotDurable{Reason: fmt.Sprintf("%s: %v", unstored, err)}
	}
	return nil
}

// failed reports whether a change was not made.
func failed(err error) bool {
	_, inForce := errors.AsType[*api.NotDurable](err)
	return err != nil && !inForce
}
