package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/store"
)

// Clock implements api.Controller.
func (c *control) Clock() api.Clock { return shownClock(c.store.Clock()) }

// ConfirmClock implements api.Controller. It changes nothing while the disk fails, since the disk would not take
// deletions either.
func (c *control) ConfirmClock(ctx context.Context, author string) (api.Clock, error) {
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	if err := c.store.Durable(ctx); err != nil && !errors.Is(err, store.ErrClosed) {
		return api.Clock{}, api.DiskFailing(fmt.Sprintf("nothing has changed, confirm the clock again once the disk works: %v", err))
	}
	before, err := c.store.ConfirmClock(ctx, author)
	switch {
	case errors.Is(err, store.ErrClosed):
		return api.Clock{}, ErrStopping
	case err != nil:
		return api.Clock{}, status.Errorf(codes.Internal, "the clock may be doubted again after a restart: %v", err)
	}
	if before.Doubted {
		c.audit(ctx, time.Now(), store.AuditEntry{
			Action: "ConfirmClock", Author: author, Before: "doubted since " + before.Since.UTC().Format(time.RFC3339), After: "believed",
		})
		if err := c.store.Flush(ctx); err != nil {
			return api.Clock{}, status.Errorf(codes.Internal, "the clock is believed, but the audit of that is not on disk: %v", err)
		}
	}
	return shownClock(before), nil
}

// shownClock converts the state of the clock for clients.
func shownClock(c store.Clock) api.Clock {
	return api.Clock{Doubted: c.Doubted, Wall: c.Wall, Steady: c.Steady, Since: c.Since}
}

// logClock logs the beginning or end of doubt in the clock.
func logClock(log zerolog.Logger, c store.Clock) {
	if c.Doubted {
		log.Warn().Str("event", "clock_doubted").Time("clock", c.Wall).Time("steady", c.Steady).
			Str("ahead", c.Wall.Sub(c.Steady).Round(time.Second).String()).
			Msg("the clock has jumped, or hdsd was off for a long time: history ages by the time that passes until the clock is right again or 'hdsd clock confirm' confirms it")
		return
	}
	log.Warn().Str("event", "clock_believed").Time("clock", c.Wall).Str("why", c.Reason).Msg("history ages by the clock again")
}
