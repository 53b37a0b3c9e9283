package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/caller"
	"hdsd/internal/share"
)

// patience is how long a body waits for others to be processed before it is refused.
const patience = 2 * time.Second

// Bodies of up to smallBody bytes are processed at once. Of larger ones, which may be
// many times as large when they are decoded, one is at a time.
const smallBody = 64 << 10

// Budget bounds the bytes of bodies, over all servers that share it. A nil one bounds
// nothing.
type Budget struct {
	// Refused, if not nil, is called for each request that is refused because it has, or
	// asks for, too much. It must not block.
	Refused func(*http.Request, error)

	bytes *share.Pool
	turns chan struct{}
}

func (b *Budget) refused(r *http.Request, err error) {
	if b != nil && b.Refused != nil && status.Code(err) == codes.ResourceExhausted {
		b.Refused(r, err)
	}
}

// NewBudget makes a budget of the bytes in a pool, which others may share.
func NewBudget(bytes *share.Pool) *Budget {
	return &Budget{bytes: bytes, turns: make(chan struct{}, 1)}
}

// reader gives a reader of a request's body that counts it: what is announced at once,
// and the rest as it comes.
func (b *Budget) reader(r *http.Request, body io.Reader) (counted io.Reader, done func(), err error) {
	if b == nil {
		return body, func() {}, nil
	}
	lease, err := b.bytes.Take(caller.OfRequest(r).Key(), 0, nil)
	if err != nil {
		return nil, nil, err
	}
	c := &countedBody{of: body, lease: lease}
	if r.ContentLength > 0 {
		if err := c.grow(r.ContentLength); err != nil {
			lease.Release()
			return nil, nil, err
		}
	}
	return c, lease.Release, nil
}

// countedBody is a body that is counted as it is read.
type countedBody struct {
	of    io.Reader
	lease *share.Lease
	room  int64 // what is left of the lease
}

// Read implements io.Reader.
func (c *countedBody) Read(p []byte) (int, error) {
	if c.room == 0 {
		if err := c.grow(max(smallBody, c.lease.Amount()/4)); err != nil {
			return 0, err
		}
	}
	n, err := c.of.Read(p[:min(int64(len(p)), c.room)])
	c.room -= int64(n)
	return n, err
}

func (c *countedBody) grow(bytes int64) error {
	if err := c.lease.Wait(bytes, patience); err != nil {
		return err
	}
	c.room += bytes
	return nil
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
