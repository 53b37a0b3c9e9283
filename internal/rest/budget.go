package rest

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/caller"
	"hdsd/internal/share"
)

// patience is how long a body waits for others to be processed before its request is refused. A
// client that waits for longer has no answer either.
const patience = 10 * time.Second

// Bodies of up to smallBody bytes are processed at once. Of larger ones, which may be
// many times as large when they are decoded, one is at a time.
const smallBody = 64 << 10

// Budget bounds the bytes of bodies, over all servers that share it. A nil one bounds
// nothing.
type Budget struct {
	// Refused, if not nil, is called for each request that is refused because it has, or
	// asks for, too much. It must not block.
	Refused func(*http.Request, error)

	room  *share.Room
	turns chan struct{}
}

func (b *Budget) refused(r *http.Request, err error) {
	if b != nil && b.Refused != nil && status.Code(err) == codes.ResourceExhausted {
		b.Refused(r, err)
	}
}

// NewBudget makes a budget of the bytes in a room, which others may share.
func NewBudget(room *share.Room) *Budget {
	return &Budget{room: room, turns: make(chan struct{}, 1)}
}

// take waits for room for a body of so many bytes, before any is read: a part of it never holds
// what another needs. One that does not say its length needs room for as much as it may have.
func (b *Budget) take(r *http.Request, bytes int64) (done func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	t, err := b.room.Wait(ctx, caller.OfRequest(r).Key(), bytes)
	if err != nil {
		return nil, status.Errorf(codes.ResourceExhausted, "there is no room for a request of %d bytes within %s: try again later, announce its length, or raise limits.max_bytes_in_flight", bytes, patience)
	}
	return t.Release, nil
}

// turn waits until a body may be processed, and adds the end of that to done.
func (b *Budget) turn(ctx context.Context, bytes int, done *func()) error {
	if b == nil || bytes <= smallBody {
		return nil
	}
	select {
	case b.turns <- struct{}{}:
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	before := *done
	*done = func() {
		<-b.turns
		before()
	}
	return nil
}
