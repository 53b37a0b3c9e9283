package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"hdsd/notify"
)

// wire is a network with one receiver behind it.
type wire struct {
	mu     sync.Mutex
	got    []posted
	answer func(r posted) (int, error) // nil: 200
}

// posted is a request that arrived.
type posted struct {
	at     time.Time
	url    string
	body   string
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p := posted{time.Now(), r.URL.String(), string(body), r.Header}
	w.mu.Lock()
	w.got = append(w.got, p)
	answer := w.answer
	w.mu.Unlock()
	code := http.StatusOK
	if answer != nil {
		if code, err = answer(p); err != nil {
			return nil, err
		}
	}
	if code == 0 { // hangs
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " as it is"), Body: io.NopCloser(bytes.NewReader(nil)), Request: r}, nil
}

func (w *wire) set(answer func(posted) (int, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// take returns what came since it was last called.
func (w *wire) take() []posted {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

// always answers with one status.
func always(code int) func(posted) (int, error) {
	return func(posted) (int, error) { return code, nil }
}

// bench is a hub that runs.
type bench struct {
	*Hub
	t    *testing.T
	wire *wire
	log  *strings.Builder
	stop func()
}

func newBench(t *testing.T, dir string, look func() []notify.Condition, receivers ...Receiver) *bench {
	b := &bench{t: t, wire: &wire{}, log: &strings.Builder{}}
	b.Hub = New(Options{
		Node: "hdsd-1", Dir: dir, Log: zerolog.New(zerolog.SyncWriter(b.log)), Registerer: prometheus.NewRegistry(), Transport: b.wire, Look: look,
		ReadSecret: os.ReadFile,
	})
	b.Set(receivers)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	b.stop = func() { cancel(); <-done }
	return b
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func webhook(name string) Receiver {
	return Receiver{Name: name, Target: Target{Type: Webhook, URL: "http://hooks.test/" + name}}
}

func alertmanager() Receiver {
	return Receiver{Name: "am", Target: Target{Type: Alertmanager, URL: "http://am.test/"}}
}

func clusterDown(name string) notify.Change {
	return notify.Change{Condition: notify.Condition{
		Key: notify.Key{Kind: notify.ClusterDown, Cluster: name}, Since: time.Now(), Text: "cluster " + name + ": all down", Command: "hdsd endpoints " + name,
	}}
}

func over(c notify.Change) notify.Change {
	c.Ended = true
	return c
}

// said lists the notifications in requests to a webhook, as "status cluster".
func said(t *testing.T, all []posted) (out []string) {
	t.Helper()
	for _, p := range all {
		var d delivery
		if err := json.Unmarshal([]byte(p.body), &d); err != nil {
			t.Fatal(err)
		}
		for _, n := range d.Notifications {
			out = append(out, n.Status+" "+n.Cluster)
		}
	}
	return out
}

func (b *bench) want(want ...string) {
	b.t.Helper()
	if got := said(b.t, b.wire.take()); !slices.Equal(got, want) {
		b.t.Errorf("said %q, want %q", got, want)
	}
}

// TestAReceiverThatFailsIsTriedAgain, with longer and longer pauses, until it takes what it
// was not told; another receiver is told meanwhile.
func TestAReceiverThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"), webhook("b"))
		defer b.stop()
		b.wire.set(func(p posted) (int, error) {
			if strings.HasSuffix(p.url, "/a") {
				return http.StatusServiceUnavailable, nil
			}
			return http.StatusOK, nil
		})
		web := clusterDown("web")
		b.Post([]notify.Change{web})
		pass(10 * time.Minute)
		var toA []posted
		for _, p := range b.wire.take() {
			if strings.HasSuffix(p.url, "/a") {
				toA = append(toA, p)
			}
		}
		if len(toA) < 12 || len(toA) > 30 {
			t.Fatalf("%d attempts", len(toA))
		}
		for i := 1; i < len(toA); i++ {
			if pause := toA[i].at.Sub(toA[i-1].at); pause < 500*time.Millisecond || pause > time.Minute || i > 8 && pause < 30*time.Second {
				t.Errorf("pause %d is %s", i, pause)
			}
		}
		states := b.States()
		if a := states[0]; a.FailingSince.IsZero() || a.Queued != 1 || a.Open != 0 || a.LastError != "it answers 503 as it is" {
			t.Errorf("%+v", a)
		}
		if s := states[1]; !s.FailingSince.IsZero() || s.Queued != 0 || s.Open != 1 || s.LastSuccess.IsZero() {
			t.Errorf("%+v", s)
		}
		b.wire.set(nil)
		pass(time.Minute)
		b.want("firing web")
		if strings.Count(b.log.String(), "notify_failing") != 1 || strings.Count(b.log.String(), "notify_working") != 1 {
			t.Errorf("the log is %s", b.log)
		}
		b.Post([]notify.Change{over(web)})
		pass(time.Second)
		b.want("resolved web", "resolved web")
	})
}

// TestAReceiverThatHangs delays nobody, and is given up after a while.
func TestAReceiverThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"))
		defer b.stop()
		b.wire.set(always(0))
		b.Post([]notify.Change{clusterDown("web")})
		pass(time.Second)
		for i := range 3000 { // it does not wait, and what it keeps is bounded
			c := clusterDown(fmt.Sprint("c", i))
			b.Post([]notify.Change{c})
			synctest.Wait()
			b.Post([]notify.Change{over(c)})
			synctest.Wait()
		}
		pass(attemptTimeout)
		s := b.States()[0]
		if s.FailingSince.IsZero() || s.Queued > maxQueued || len(s.Dead) != maxDead || s.Dropped != 3000 || s.LastError != "no answer within 10s" {
			t.Errorf("queued %d, %d dead letters, %q", s.Queued, len(s.Dead), s.LastError)
		}
		b.wire.take()
		b.wire.set(nil)
		pass(15 * time.Second)
		b.want("firing web")
	})
}

// TestWhatBeganAndEndedUntoldIsADeadLetter, since the receiver did not take its beginning.
func TestWhatBeganAndEndedUntoldIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"))
		defer b.stop()
		b.wire.set(func(posted) (int, error) { return 0, errors.New("no route") })
		web, api := clusterDown("web"), clusterDown("api")
		b.Post([]notify.Change{web, api})
		pass(time.Minute)
		b.Post([]notify.Change{over(web)})
		pass(time.Second)
		b.wire.take()
		b.wire.set(nil)
		pass(2 * time.Minute)
		b.want("firing api")
		if s := b.States()[0]; s.Dropped != 1 || s.Dead[0].Notice.Cluster != "web" || s.Dead[0].Error != "it began and ended before the receiver took it" {
			t.Errorf("%+v", s)
		}
	})
}

// TestWhatIsRefusedIsFoundAndGivenUp: of several, only the one that the receiver finds wrong.
func TestWhatIsRefusedIsFoundAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"))
		defer b.stop()
		b.wire.set(func(p posted) (int, error) {
			if strings.Contains(p.body, "bad") {
				return http.StatusBadRequest, nil
			}
			return http.StatusOK, nil
		})
		bad := clusterDown("bad")
		b.Post([]notify.Change{clusterDown("api"), bad, clusterDown("web")})
		pass(5 * time.Second)
		if got := said(t, b.wire.take()[1:]); !slices.Equal(got, []string{"firing api", "firing bad", "firing web"}) {
			t.Errorf("%q", got)
		}
		if s := b.States()[0]; s.Open != 2 || s.Queued != 0 || s.Dropped != 1 || !strings.Contains(s.Dead[0].Error, "400") {
			t.Errorf("%+v", s)
		}
		b.Post([]notify.Change{over(bad)})
		pass(time.Second)
		b.want() // it was never told
	})
}

// TestAlertmanagerIsToldAgain before it ends alerts by itself; the end has the same labels.
func TestAlertmanagerIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, alertmanager())
		defer b.stop()
		web := clusterDown("web")
		b.Post([]notify.Change{web})
		pass(10 * time.Minute)
		b.Post([]notify.Change{over(web)})
		pass(10 * time.Minute)
		all := b.wire.take()
		if len(all) < 11 || len(all) > 12 {
			t.Fatalf("%d requests", len(all))
		}
		var first []alert
		for i, p := range all {
			var got []alert
			if err := json.Unmarshal([]byte(p.body), &got); err != nil || len(got) != 1 || p.url != "http://am.test/api/v2/alerts" {
				t.Fatalf("%s: %s, %v", p.url, p.body, err)
			}
			if i == 0 {
				first = got
				want := map[string]string{"alertname": "HdsdClusterDown", "cluster": "web", "severity": "critical", "hdsd": "hdsd-1"}
				if fmt.Sprint(got[0].Labels) != fmt.Sprint(want) || got[0].Annotations["command"] != "hdsd endpoints web" {
					t.Errorf("%+v", got[0])
				}
			} else if all[i].at.Sub(all[i-1].at) > 2*time.Minute {
				t.Errorf("%s between two", all[i].at.Sub(all[i-1].at))
			}
			last := i == len(all)-1
			if fmt.Sprint(got[0].Labels) != fmt.Sprint(first[0].Labels) || !got[0].StartsAt.Equal(first[0].StartsAt) || (got[0].EndsAt != nil) != last || last && got[0].EndsAt.After(p.at) {
				t.Errorf("request %d has %+v", i, got[0])
			}
		}
	})
}

// TestARestart tells nothing again, and ends what ended meanwhile when all is known; what the
// receiver did not take before is told.
func TestARestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dir, nil, webhook("a"))
		web, api, late := clusterDown("web"), clusterDown("api"), clusterDown("late")
		b.Post([]notify.Change{web, api})
		pass(time.Second)
		b.want("firing api", "firing web")
		b.wire.set(always(http.StatusBadGateway))
		b.Post([]notify.Change{late})
		pass(time.Second)
		b.stop()

		b = newBench(t, dir, nil, webhook("a"))
		defer func() { b.stop() }()
		b.Post([]notify.Change{web, late})
		pass(time.Minute)
		b.want("firing late")
		b.Confirm()
		pass(time.Second)
		b.want("resolved api")
		b.Post([]notify.Change{over(web)})
		pass(time.Second)
		b.want("resolved web")
		b.stop()

		b = newBench(t, dir, nil, webhook("a"), webhook("b"))
		b.Post([]notify.Change{late})
		pass(time.Second)
		b.want("firing late") // b's first
	})
}

// TestAStopWaitsForWhatIsOnItsWay, so that a restart does not tell it again; but not for long.
func TestAStopWaitsForWhatIsOnItsWay(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dir, nil, webhook("a"))
		b.wire.set(func(posted) (int, error) { time.Sleep(time.Second); return http.StatusOK, nil })
		b.Post([]notify.Change{clusterDown("web")})
		pass(time.Millisecond)
		b.stop()
		b.want("firing web")

		b = newBench(t, dir, nil, webhook("a"))
		b.Post([]notify.Change{clusterDown("web")})
		pass(time.Minute)
		b.want()
		b.wire.set(always(0))
		b.Post([]notify.Change{clusterDown("api")})
		pass(time.Millisecond)
		began := time.Now()
		if b.stop(); time.Since(began) > 3*time.Second {
			t.Errorf("it takes %s", time.Since(began))
		}
	})
}

// TestADamagedFileOfWhatWasTold is said, and stops nothing.
func TestADamagedFileOfWhatWasTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/"+keptFile, []byte(`[{"name":`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dir, nil, webhook("a"))
		defer b.stop()
		b.Post([]notify.Change{clusterDown("web")})
		pass(time.Second)
		b.want("firing web")
		if !strings.Contains(b.log.String(), `"event":"notifications_not_kept"`) {
			t.Errorf("the log is %s", b.log)
		}
	})
}

// TestReceiversChange while the hub runs: a new one is told what is wrong, one that is gone
// nothing more, and one that has moved what is wrong.
func TestReceiversChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"))
		defer b.stop()
		b.Post([]notify.Change{clusterDown("web")})
		pass(time.Second)
		b.want("firing web")
		b.Set([]Receiver{webhook("a"), webhook("b")})
		pass(time.Second)
		b.want("firing web")
		moved := webhook("b")
		moved.Target.URL += "2"
		b.Set([]Receiver{moved})
		pass(time.Second)
		b.want("firing web")
		b.Post([]notify.Change{clusterDown("api")})
		pass(time.Second)
		b.want("firing api")
	})
}

// TestAReceiverIsReachedInAnotherWay from a reload on: it hears of nothing twice, and of each end.
// One that waits to be tried again is tried at once.
func TestAReceiverIsReachedInAnotherWay(t *testing.T) {
	ways := map[string]func(*Target){
		"another token": func(t *Target) { t.TokenFile = "/dev/null" },
		"a signature":   func(t *Target) { t.SecretFile = "/dev/null" },
		"another user":  func(t *Target) { t.User, t.PasswordFile = "hdsd", "/dev/null" },
	}
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "", nil, webhook("a"))
				defer b.stop()
				b.Post([]notify.Change{clusterDown("web")})
				pass(time.Second)
				b.want("firing web")
				other := webhook("a")
				change(&other.Target)
				b.Set([]Receiver{other})
				pass(time.Second)
				b.want()
				b.Post([]notify.Change{over(clusterDown("web"))})
				pass(time.Second)
				b.want("resolved web")
				if header := b.States()[0]; header.Open != 0 {
					t.Errorf("%d are open", header.Open)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"))
		defer b.stop()
		b.wire.set(always(http.StatusServiceUnavailable))
		b.Post([]notify.Change{clusterDown("web")})
		pass(10 * time.Minute) // the pauses are a minute now
		b.wire.set(func(p posted) (int, error) {
			if p.header.Get("Authorization") == "" {
				return http.StatusServiceUnavailable, nil
			}
			return http.StatusOK, nil
		})
		b.wire.take()
		other := webhook("a")
		other.Target.User, other.Target.PasswordFile = "hdsd", "/dev/null"
		b.Set([]Receiver{other})
		pass(time.Second)
		b.want("firing web")
	})
}

// TestWhatNobodyPostsIsLookedFor.
func TestWhatNobodyPostsIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var wrong []notify.Condition
		set := func(all ...notify.Condition) {
			mu.Lock()
			defer mu.Unlock()
			wrong = all
		}
		b := newBench(t, "", func() []notify.Condition { mu.Lock(); defer mu.Unlock(); return slices.Clone(wrong) }, webhook("a"))
		defer b.stop()
		set(clusterDown("disk").Condition)
		pass(2 * time.Second)
		b.want("firing disk")
		set()
		pass(2 * time.Second)
		b.want("resolved disk")
	})
}
