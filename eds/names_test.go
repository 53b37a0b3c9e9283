package eds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/peer/limit"
)

// madeUp gives names of what does not exist.
func madeUp(of string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(of, i))
	}
	return names
}

func namesPool(total, each int64) *limit.Pool {
	return limit.NewPool(limit.Limit{Unit: "names", Field: "limits.max_subscriptions", Total: total, PerCallerField: "limits.max_subscriptions_per_caller", PerCaller: each})
}

func TestMadeUpNamesAreBounded(t *testing.T) {
	pool := namesPool(0, 100)
	inBubble(t, Options{Names: pool}, func(t *testing.T, b *bench) {
		b.publish(madeUp("real", 300)...)
		taken := func(what string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := pool.Usage().Taken; got != want {
				t.Errorf("%s: %d names are counted, want %d", what, got, want)
			}
		}
		d := b.delta()
		d.send(subscribe(resourcev3.EndpointType, madeUp("real", 300)...))
		taken("what exists", 0)
		d.send(subscribe(resourcev3.EndpointType, madeUp("x", 90)...))
		taken("what does not", 90)
		d.send(subscribe(resourcev3.EndpointType, madeUp("x", 90)...))
		taken("the same again", 90)
		d.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceNamesUnsubscribe: madeUp("x", 40)})
		taken("fewer", 50)
		d.send(subscribe(resourcev3.EndpointType, strings.Repeat("y", 40*256)))
		taken("a long one", 91)
		d.send(subscribe(resourcev3.EndpointType, madeUp("z", 10)...))
		if err := <-d.ended; status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "limits.max_subscriptions_per_caller") {
			t.Errorf("too many: %v", err)
		}
		taken("after the end", 0)
	})
}

func TestLongNamesAreRefused(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		d := b.delta()
		d.send(subscribe(resourcev3.EndpointType, strings.Repeat("y", 16<<10+1)))
		if err := <-d.ended; status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "16384 bytes") {
			t.Errorf("it ends with %v", err)
		}
	})
}

// TestNothingIsCountedBeforeTheSourcesAnswered: what data planes ask for may exist.
func TestNothingIsCountedBeforeTheSourcesAnswered(t *testing.T) {
	pool := namesPool(10, 0)
	inBubble(t, Options{Names: pool, Incomplete: true}, func(t *testing.T, b *bench) {
		d := b.delta()
		d.send(subscribe(resourcev3.EndpointType, madeUp("x", 90)...))
		synctest.Wait()
		if got := pool.Usage().Taken; got != 0 {
			t.Errorf("%d names are counted", got)
		}
		d.cancel()
	})
}

// TestIdleStreamsAreNamed in the log, and counted.
func TestIdleAndDeafStreamsAreNamed(t *testing.T) {
	var log bytes.Buffer
	inBubble(t, Options{Log: zerolog.New(&log)}, func(t *testing.T, b *bench) {
		mute, err := discoveryv3.NewAggregatedDiscoveryServiceClient(b.conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := mute.Recv(); status.Code(err) != codes.DeadlineExceeded || time.Since(began) > 10*time.Second {
			t.Errorf("it ends with %v after %v", err, time.Since(began))
		}
		if n := testutil.ToFloat64(b.server.recorder.metrics.idle); n != 1 {
			t.Errorf("hdsd_xds_idle_streams_total is %v", n)
		}
		if !strings.Contains(log.String(), `"event":"stream_idle"`) {
			t.Errorf("logged: %s", &log)
		}
	})
}
