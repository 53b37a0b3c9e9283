package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/api"
	"hdsd/health"
)

// burst is a Backend whose watchers have a kilobyte for each change that they ask for.
type burst struct {
	fleet
	asked []int
}

func (b *burst) Watch(context.Context, api.WatchQuery) (api.Watcher, error) { return b, nil }

func (b *burst) Next(ctx context.Context, changes int) (*api.Batch, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	b.asked = append(b.asked, changes)
	reason := strings.Repeat("x", changes<<10)
	return &api.Batch{Events: []*api.Event{{Token: "t", Transition: &health.Transition{Time: noon, Reason: reason}}}}, nil
}

func (b *burst) Close() {}

// client takes so long for each write, and leaves after the last one.
type client struct {
	*httptest.ResponseRecorder
	takes []time.Duration
	leave context.CancelFunc
}

func (c *client) Write(text []byte) (int, error) {
	if len(c.takes) == 0 {
		c.leave()
		return len(text), nil
	}
	time.Sleep(c.takes[0])
	c.takes = c.takes[1:]
	return len(text), nil
}

// TestBriskClientsAreSentMoreAtOnce: once one has taken more than the system keeps for it, it
// gets up to 300 changes at once, and again 100 when it has kept hdsd waiting.
func TestBriskClientsAreSentMoreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &burst{}
		handler, err := api.NewService(b).Handler()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		takes := slices.Repeat([]time.Duration{10 * time.Millisecond}, 30)
		takes[0], takes[5], takes[20] = 0, 2*time.Second, time.Second // the first write is empty
		handler.ServeHTTP(&client{httptest.NewRecorder(), takes, cancel}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/watch", nil))
		want := slices.Concat(slices.Repeat([]int{100}, 5+11), slices.Repeat([]int{300}, 4), slices.Repeat([]int{100}, 11))[:len(b.asked)]
		if len(b.asked) < 25 || !slices.Equal(b.asked, want) {
			t.Errorf("asked for %v, want %v", b.asked, want)
		}
	})
}
