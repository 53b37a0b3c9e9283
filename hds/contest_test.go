package hds_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/hds"
)

// persist is an Envoy: it opens a stream, reports each second once it has a
// specifier, and opens another stream soon after one ends, until it is stopped.
func (f *fixture) persist(on *grpc.ClientConn, first, report *healthv3.HealthCheckRequestOrEndpointHealthResponse) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			c := f.open(on)
			_ = c.stream.Send(first) // Recv tells of what fails
			if _, err := c.stream.Recv(); err == nil {
				for ctx.Err() == nil && c.stream.Send(report) == nil {
					sleep(ctx, time.Second)
				}
			}
			c.cancel()
			sleep(ctx, 300*time.Millisecond)
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestASecondCheckerOfAnIDNeverTakesItFromOneThatReports has two checkers with
// one node id, which see different things, connect again and again for ten
// minutes.
func TestASecondCheckerOfAnIDNeverTakesItFromOneThatReports(t *testing.T) {
	for name, second := range map[string]struct{ host, zone string }{
		"on its host, or behind its NAT": {"10.1.0.1", "z1"},
		"through its connection":         {"", "z1"},
		"on another host":                {"10.1.0.2", "z1"},
		"in another zone":                {"10.1.0.1", "z2"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
				f.assigning(checked{1, web1})
				conn := f.dial("10.1.0.1")
				other := conn
				if second.host != "" {
					other = f.dial(second.host)
				}
				defer f.persist(conn, hello(nodeIn("a", "z1")), report(said{web1, down, 0}))()
				same(t, "calls", f.sink.take(), "connected a", "reported a 1=UNHEALTHY")
				defer f.persist(other, hello(nodeIn("a", second.zone)), report(said{web1, up, 0}))()
				time.Sleep(10*time.Minute + time.Second/2)
				for _, call := range f.sink.take() {
					if call != "reported a" {
						t.Errorf("the second one takes effect: %s", call)
						break
					}
				}
				if n := f.counted("hdsd_hds_refused_streams_total"); n < 100 || n > 300 {
					t.Errorf("%v refusals are counted in ten minutes", n)
				}
				if n := strings.Count(f.log.String(), `"event":"checker_id_contested"`); n != 1 {
					t.Errorf("logged %d times in ten minutes: %s", n, f.log)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := strings.Count(f.log.String(), `"event":"checker_id_contested"`); n != 2 {
					t.Errorf("logged %d times in eleven minutes", n)
				}
				if n := f.counted("hdsd_hds_replaced_streams_total"); n != 0 {
					t.Errorf("%v streams are replaced", n)
				}
			})
		})
	}
}

// connectedAfter tells how long after now the sink is told that somebody has
// connected.
func (f *fixture) connectedAfter() time.Duration {
	f.Helper()
	start := time.Now()
	for time.Since(start) < time.Minute {
		for _, call := range f.sink.take() {
			if strings.HasPrefix(call, "connected") {
				return time.Since(start)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Fatal("nobody is admitted within a minute")
	return 0
}

// TestACheckerThatComesBackIsAdmitted has a checker come back while hdsd has
// its old stream still, from the same host and from another one.
func TestACheckerThatComesBackIsAdmitted(t *testing.T) {
	for name, test := range map[string]struct {
		silent time.Duration     // since the old stream's last report
		then   func(old *client) // after the new one came
		within time.Duration
	}{
		"its old stream is half open": {
			silent: 400 * time.Millisecond, then: func(*client) {}, within: 2600 * time.Millisecond,
		},
		"its old stream is half open, and its last report is on the way still": {
			silent: 400 * time.Millisecond, then: func(old *client) {
				time.Sleep(100 * time.Millisecond)
				old.send(report())
			}, within: 3000 * time.Millisecond,
		},
		"its old stream is half open for long": {
			silent: time.Minute, then: func(*client) {}, within: time.Second,
		},
		"its old stream turns out to be reset": {
			silent: 400 * time.Millisecond, then: func(old *client) {
				time.Sleep(100 * time.Millisecond)
				old.cancel()
			}, within: 0,
		},
	} {
		for _, host := range []string{"10.1.0.1", "10.1.0.2"} {
			t.Run(name+", from "+host, func(t *testing.T) {
				bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
					old := f.connect("a", "10.1.0.1", "z1")
					old.send(report())
					time.Sleep(test.silent)
					f.sink.take()
					next := f.connect("a", host, "z1")
					synctest.Wait()
					test.then(old)
					if waited := f.connectedAfter(); waited > test.within {
						t.Errorf("it waits for %s, want at most %s", waited, test.within)
					}
					next.send(report())
					same(t, "calls", f.sink.take(), "reported a")
					if n := f.counted("hdsd_hds_refused_streams_total"); n != 0 {
						t.Errorf("%v refusals are counted", n)
					}
					if strings.Contains(f.log.String(), "contested") {
						t.Errorf("its return is taken for a second checker: %s", f.log)
					}
				})
			})
		}
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		first := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		go func() {
			for range 4 {
				time.Sleep(700 * time.Millisecond)
				first.send(report())
			}
		}()
		start := time.Now()
		second := f.connect("a", "10.1.0.1", "z1")
		got := second.failure()
		const text = `node id "a" is taken: a checker at 10.1.0.1 has it, and was last heard 200ms ago; give each checker its own node.id ` +
			`(a checker that comes back gets its id when its old stream ends, or says nothing for 3s)`
		if got.Code() != codes.AlreadyExists || got.Message() != text {
			t.Errorf("refused with %s: %s", got.Code(), got.Message())
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("refused after %s", waited)
		}
	})
}

func TestAStreamThatWaitsAndGoesLeavesNothingBehind(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		first := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		second := f.connect("a", "10.1.0.1", "z1")
		synctest.Wait()
		second.cancel()
		synctest.Wait()
		first.cancel()
		same(t, "calls", f.sink.take(), "disconnected a")
		f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		waiting := f.connect("a", "10.1.0.1", "z1")
		synctest.Wait()
		f.server.Close()
		waiting.fails(codes.Unavailable, "shutting down")
		if n := f.counted("hdsd_hds_refused_streams_total"); n != 0 {
			t.Errorf("%v refusals are counted", n)
		}
	})
}

// TestOfManyThatWaitOneIsAdmitted has several come while a stream is half open:
// one of them gets its place, and keeps it.
func TestOfManyThatWaitOneIsAdmitted(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		f.connect("a", "10.1.0.1", "z1")
		same(t, "calls", f.sink.take(), "connected a")
		conn := f.dial("10.1.0.1")
		for range 5 {
			defer f.persist(conn, hello(nodeIn("a", "z1")), report(said{web1, up, 0}))()
		}
		time.Sleep(3500 * time.Millisecond)
		same(t, "calls", f.sink.take(), "connected a", "reported a 1=HEALTHY")
		time.Sleep(time.Minute)
		for _, call := range f.sink.take() {
			if call != "reported a" {
				t.Errorf("it does not keep it: %s", call)
			}
		}
	})
}

// TestStreamAndFetchesOfOneIDFollowTheSameRules has a checker that fetches and
// one with a stream use one id.
func TestStreamAndFetchesOfOneIDFollowTheSameRules(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		ask := hello(nodeIn("a", "z1"))
		stream := f.connect("a", "10.1.0.1", "z1")
		stream.next()
		same(t, "calls", f.sink.take(), "connected a")
		for range 5 {
			f.isRefused("a fetch beside a stream", f.fetch("10.1.0.1", ask), codes.AlreadyExists, "is taken")
			f.isRefused("a report beside the stream", f.fetch("10.1.0.1", report(), "a"), codes.FailedPrecondition, "has not fetched")
			stream.send(report(said{web1, up, 0}))
			time.Sleep(time.Second)
		}
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY", "reported a", "reported a", "reported a", "reported a")

		stream.cancel()
		same(t, "calls", f.sink.take(), "disconnected a")
		f.gets("a fetch when the stream has ended", f.fetch("10.1.0.1", ask), webOne)
		ended := make(chan *status.Status, 1)
		go func() { ended <- f.connect("a", "10.1.0.1", "z1").failure() }()
		for range 5 {
			time.Sleep(time.Second)
			f.gets("a report", f.fetch("10.1.0.1", report(said{web1, down, 0}), "a"), webOne)
		}
		if got := <-ended; got.Code() != codes.AlreadyExists {
			t.Errorf("a stream beside fetches: %v", got)
		}
		f.sink.take()
		stream = f.connect("a", "10.1.0.1", "z1")
		time.Sleep(time.Second)
		same(t, "calls while the one that fetches may come again", f.sink.take())
		stream.next() // it is given up
		f.sink.take()

		time.Sleep(3 * time.Second)
		f.gets("a fetch when the stream is silent", f.fetch("10.1.0.2", ask), webOne)
		stream.fails(codes.Aborted, "takes the place of this stream")
		same(t, "calls", f.sink.take(), "connected a")
		changed := nodeIn("a", "z1")
		changed.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: "1.40.0"}
		f.isRefused("a fetch of another release", f.fetch("10.1.0.2", hello(changed)), codes.AlreadyExists, "is taken")
		time.Sleep(3 * time.Second)
		f.gets("a fetch of another release when the first has stopped", f.fetch("10.1.0.2", hello(changed)), webOne)
		same(t, "calls", f.sink.take(), "disconnected a", "connected a")
	})
}

// TestACheckerThatFetchesIsKnownByItsCertificate has fetches come from several
// addresses, as through a load balancer: with a certificate they are of one
// checker, and without one they are not.
func TestACheckerThatFetchesIsKnownByItsCertificate(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		a := newAuthority(t)
		own := a.issue("a", "a.example")
		here, there := f.securedAt(a, "10.1.0.1"), f.securedAt(a, "10.1.0.2")
		for range 3 {
			for _, from := range []func() healthv3.HealthDiscoveryServiceClient{
				func() healthv3.HealthDiscoveryServiceClient { return here(own) },
				func() healthv3.HealthDiscoveryServiceClient { return there(own) },
			} {
				if _, err := from().FetchHealthCheck(f.ctx, hello(nodeIn("a", "z1"))); err != nil {
					t.Error(err)
				}
			}
		}
		same(t, "calls", f.sink.take(), "connected a")
		f.gets("without one", f.fetch("10.1.0.1", hello(&corev3.Node{Id: "b"})), webOne)
		f.isRefused("from elsewhere", f.fetch("10.1.0.2", hello(&corev3.Node{Id: "b"})), codes.AlreadyExists, "is taken")
	})
}

// TestACheckerKeepsItsIDWhileHdsdIsHeldUp has a report be taken in for longer than
// a stream may say nothing: that it is not read further is not its fault.
func TestACheckerKeepsItsIDWhileHdsdIsHeldUp(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		first := f.connect("a", "10.1.0.1", "z1")
		f.sink.take()
		var once sync.Once
		f.sink.onReported = func(string) { once.Do(func() { time.Sleep(10 * time.Second) }) }
		var work sync.WaitGroup
		work.Go(func() {
			for range 15 {
				first.send(report())
				time.Sleep(time.Second)
			}
		})
		defer work.Wait()
		time.Sleep(time.Second / 2)
		second := f.connect("a", "10.1.0.1", "z1")
		time.Sleep(8 * time.Second)
		f.isRefused("a fetch", f.fetch("10.1.0.2", hello(nodeIn("a", "z1"))), codes.AlreadyExists, "is taken")
		if got := second.failure(); got.Code() != codes.AlreadyExists {
			t.Errorf("the second one ends with %v", got)
		}
		for _, call := range f.sink.take() {
			if call != "reported a" {
				t.Errorf("the first one loses its id: %s", call)
			}
		}
	})
}
