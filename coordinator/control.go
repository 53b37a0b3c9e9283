package coordinator

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/store"
)

// control does what operators ask for. That takes effect before it is on disk: a disk
// that fails is no reason to go on publishing.
type control struct {
	core  *core
	store *store.Store
	*backups
}

// diskPatience is how long operators wait for the disk.
const diskPatience = 10 * time.Second

// carryOut runs act on the core's goroutine and waits until what it did is on disk. If
// that may not be, the error begins with the text unstored. After any error, the caller
// must not read what act writes.
func (c *control) carryOut(ctx context.Context, unstored string, act func() error) error {
	var refused error
	if err := c.core.ask(ctx, func() { refused = act() }); err != nil {
		return err
	}
	if refused != nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	if err := c.store.Flush(ctx); err != nil {
		return status.Errorf(codes.Internal, "%s: %v", unstored, err)
	}
	return nil
}
