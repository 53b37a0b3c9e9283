package xds

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/internal/pace"
)

// Bounds of the back-off between attempts, as in Envoy, with jitter.
const (
	leastBackoff = 500 * time.Millisecond
	mostBackoff  = 30 * time.Second
)

// channel subscribes to some types, on one stream or by polling. The goroutine of run
// owns it; its tables are the source's.
type channel struct {
	source   *Source
	tables   []*table
	scope    scope
	wake     chan struct{} // the subscriptions may have changed
	node     *corev3.Node
	nodeOnce bool // only the first message of a stream has the node
	limit    *bucket
	attempt  func(ctx context.Context, server int) (good bool, err error)

	ignoredPace pace.Pace
}

// run asks until the context ends: one server as long as it answers, then the next.
// After all have failed, it backs off and starts over.
func (c *channel) run(ctx context.Context) {
	servers := c.source.settings.servers()
	wait := backoff{}
	for at := 0; ctx.Err() == nil; {
		if !c.asks() {
			c.sleep(ctx, time.Hour, true)
			continue
		}
		good, err := c.attempt(ctx, at)
		if ctx.Err() != nil {
			return
		}
		next := (at + 1) % len(servers)
		if err == nil {
			err = errors.New("the stream ended")
		}
		c.lose(servers[at], servers[next], err)
		if good {
			wait = backoff{}
		}
		if at = next; at == 0 || good {
			c.sleep(ctx, wait.next(), false)
		}
	}
}

// asks reports whether there is anything to ask for.
func (c *channel) asks() bool {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	return slices.ContainsFunc(c.tables, func(t *table) bool { return t.asks(c.scope) })
}

// sleep waits for d. If wakeable, it ends early when there is more to ask for.
func (c *channel) sleep(ctx context.Context, d time.Duration, wakeable bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var wake chan struct{}
	if wakeable {
		wake = c.wake
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// backoff grows with each wait.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, leastBackoff), mostBackoff)
	return b.last/2 + rand.N(b.last/2+1) //nolint:gosec // jitter, so that clients do not come all at once
}

// bucket limits the rate of requests. A nil bucket does not.
type bucket struct {
	most, rate float64
	tokens     float64
	at         time.Time
}

func newBucket(settings *corev3.RateLimitSettings) *bucket {
	if settings == nil {
		return nil
	}
	b := &bucket{most: defaultMaxTokens, rate: defaultFillRate}
	if settings.GetMaxTokens() != nil {
		b.most = float64(settings.GetMaxTokens().GetValue())
	}
	if settings.GetFillRate() != nil {
		b.rate = max(settings.GetFillRate().GetValue(), lowestFillRate)
	}
	b.tokens = b.most
	return b
}

// take takes a token, or returns how long to wait for one.
func (b *bucket) take(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	if !b.at.IsZero() {
		b.tokens = min(b.most, b.tokens+b.rate*max(0, now.Sub(b.at).Seconds()))
	}
	b.at = now
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	seconds := min((1-b.tokens)/b.rate, 100*365*24*3600)
	return max(time.Millisecond, time.Duration(seconds*float64(time.Second)))
}
