package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
)

// callingStream is a stream of a caller. Its first message comes when it is sent.
type callingStream struct {
	grpc.ServerStream
	ctx   context.Context
	first chan struct{}
}

func (s *callingStream) Context() context.Context { return s.ctx }

func (s *callingStream) RecvMsg(any) error {
	<-s.first
	return nil
}

// crowd opens streams that stay open until release.
type crowd struct {
	t       *testing.T
	bounds  *bounds
	release chan struct{}
	all     sync.WaitGroup
	refused []error
	mu      sync.Mutex
}

func newCrowd(t *testing.T, l *configv1.Limits, log *bytes.Buffer) *crowd {
	return &crowd{t: t, bounds: newBounds(prometheus.NewRegistry(), zerolog.New(log).Level(zerolog.WarnLevel), l, 0), release: make(chan struct{})}
}

// open opens a stream. The first message comes when send is called.
func (c *crowd) open(identity, address string) (send func()) {
	s := &callingStream{ctx: peer.With(c.t.Context(), peer.Caller{Identity: identity, Address: address}), first: make(chan struct{})}
	c.all.Go(func() {
		err := c.bounds.streams.intercept(nil, s, nil, func(_ any, s grpc.ServerStream) error {
			_ = s.RecvMsg(nil)
			<-c.release
			return nil
		})
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.refused = append(c.refused, err)
		}
	})
	return sync.OnceFunc(func() { close(s.first) })
}

// TestFleetStaysWithinLimits covers 5,000 data planes and 1,000 checkers under one certificate. Each has two
// streams and two connections, the old beside the new ones.
func TestFleetStaysWithinLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := filepath.Join(t.TempDir(), "hdsd.yaml")
		if err := os.WriteFile(path, []byte("sources: [{name: local, config_source: {path: clusters.yaml}}]"), 0o600); err != nil {
			t.Fatal(err)
		}
		defaults, problems := config.Load(path)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		limits := defaults.GetLimits()
		for _, identity := range []string{"spiffe://fleet", ""} {
			c := newCrowd(t, limits, &log)
			var sends []func()
			join := func(n int, kind string) {
				for i := range n {
					address := fmt.Sprintf("10.0.0.1:%s%d", kind, i) // behind one load balancer
					sends = append(sends, c.open(identity, address))
					if identity != "" {
						if _, err := c.bounds.bytes.Connections.Take(identity, 1, nil); err != nil {
							t.Error(err)
						}
					}
				}
			}
			for _, times := range []string{"old", "new"} {
				join(5000, "plane "+times) // all at once, before anyone has sent anything
				join(1000, "checker "+times)
				synctest.Wait()
				for _, send := range sends {
					send()
				}
				synctest.Wait()
			}
			if len(c.refused) > 0 {
				t.Errorf("%q: %d refused, such as %v", identity, len(c.refused), c.refused[0])
			}
			if taken := c.bounds.streams.all.Usage().Taken; taken != 12_000 {
				t.Errorf("%q: %d streams are counted", identity, taken)
			}
			close(c.release)
			c.all.Wait()
			if taken := c.bounds.streams.all.Usage().Taken; taken != 0 {
				t.Errorf("%q: %d streams are left", identity, taken)
			}
		}
		if log.Len() > 0 {
			t.Errorf("logged: %.500s", &log)
		}
	})
}

func TestStreamsPerCallerAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCrowd(t, &configv1.Limits{MaxStreams: 100, MaxStreamsPerCaller: 10}, &log)
		for range 10 {
			c.open("a", "")()
			synctest.Wait()
		}
		c.open("a", "")()
		c.open("b", "")()
		synctest.Wait()
		if len(c.refused) != 1 || status.Code(c.refused[0]) != codes.ResourceExhausted || !strings.Contains(c.refused[0].Error(), "limits.max_streams_per_caller") {
			t.Errorf("refused: %v", c.refused)
		}
		if !strings.Contains(log.String(), `"limit":"limits.max_streams_per_caller"`) {
			t.Errorf("logged: %s", &log)
		}
		close(c.release)
		c.all.Wait()
	})
}

// TestSilentStreamsAreLimited covers streams without a message, which cannot take all places.
func TestSilentStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCrowd(t, &configv1.Limits{MaxStreams: 100, MaxStreamsPerCaller: 100}, &log)
		var sends []func()
		for i := range 29 {
			sends = append(sends, c.open("", fmt.Sprint("10.0.0.1:", i)))
			synctest.Wait()
		}
		if len(c.refused) != 1 || !strings.Contains(c.refused[0].Error(), "limits.max_streams") {
			t.Errorf("refused: %v", c.refused)
		}
		for _, send := range sends {
			send()
		}
		synctest.Wait()
		c.open("", "10.0.0.1:100")()
		synctest.Wait()
		if len(c.refused) != 1 {
			t.Errorf("refused: %v", c.refused)
		}
		close(c.release)
		c.all.Wait()
	})
}
