package xds

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"golang.org/x/time/rate"

	"hdsd/peer/limit"
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
	nodeOnce bool          // only the first message of a stream has the node
	limiter  *rate.Limiter // nil: there is none
	attempt  func(ctx context.Context, server int) (good bool, err error)

	ignoredPace limit.Pace
}

// run asks until the context ends: one server as long as it answers, then the next.
// After all have failed, it backs off and starts over.
func (c *channel) run(ctx context.Context) {
	servers := c.source.settings.servers()
	wait := backoff{}
	for index := 0; ctx.Err() == nil; {
		if !c.asks() {
			c.sleep(ctx, time.Hour, true)
			continue
		}
		good, err := c.attempt(ctx, index)
		if ctx.Err() != nil {
			return
		}
		next := (index + 1) % len(servers)
		if err == nil {
			err = errors.New("the stream ended")
		}
		c.lose(servers[index], servers[next], err)
		if good {
			wait = backoff{}
		}
		if index = next; index == 0 || good {
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

// newLimiter limits the rate of requests; nil for no limit.
func newLimiter(settings *corev3.RateLimitSettings) *rate.Limiter {
	if settings == nil {
		return nil
	}
	burst, fill := defaultMaxTokens, float64(defaultFillRate)
	if settings.GetMaxTokens() != nil {
		burst = int(settings.GetMaxTokens().GetValue())
	}
	if settings.GetFillRate() != nil {
		fill = max(settings.GetFillRate().GetValue(), lowestFillRate)
	}
	return rate.NewLimiter(rate.Limit(fill), burst)
}

// take takes a token of a limiter, or returns how long to wait for one. A nil limiter has any
// number.
func take(l *rate.Limiter, now time.Time) time.Duration {
	if l == nil || l.AllowN(now, 1) {
		return 0
	}
	seconds := min((1-l.TokensAt(now))/float64(l.Limit()), 100*365*24*3600)
	return max(time.Millisecond, time.Duration(seconds*float64(time.Second)))
}
