package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/peer"
	"hdsd/peer/limit"
)

// TestEventsAreEncodedOnce for all watchers, in each of the two forms.
func TestEventsAreEncodedOnce(t *testing.T) {
	e := &api.Event{Token: "t", Transition: &health.Transition{Endpoint: health.Endpoint{Cluster: "web"}}}
	page := &api.Batch{Events: []*api.Event{e, {Synced: true, Token: "s"}}}
	one, err := (&api.Batch{Events: []*api.Event{e}}).Text()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := (&api.Batch{Events: []*api.Event{e}}).Text()
	text, _ := page.Text()
	again, _ := page.Text()
	first, _ := e.Message()
	second, _ := e.Message()
	if &one[0] != &other[0] || &text[0] != &again[0] || &first[0] != &second[0] {
		t.Error("something was encoded twice")
	}
	if string(text) != string(one)+"event: synced\nid: s\ndata: {}\n\n" {
		t.Errorf("the page is %q", text)
	}
}

// deafWriter is a client that takes nothing.
type deafWriter struct {
	*httptest.ResponseRecorder
	deadline chan time.Time
}

func (d deafWriter) SetWriteDeadline(at time.Time) error {
	for len(d.deadline) > 0 {
		<-d.deadline
	}
	d.deadline <- at
	return nil
}

func (d deafWriter) Write(text []byte) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	time.Sleep(time.Until(<-d.deadline))
	return 0, os.ErrDeadlineExceeded
}

// watches are limits of watches, and who was deaf.
func watches(total, each int64) (l api.Limits, deaf *[]string) {
	deaf = new([]string)
	l.Watches = limit.NewPool(limit.Limit{Unit: "watches", Field: "limits.max_watchers", Total: total, PerCallerField: "limits.max_watchers_per_caller", PerCaller: each})
	l.Deaf = func(caller string) { *deaf = append(*deaf, caller) }
	return l, deaf
}

func TestDeafWatchersAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{n: 1}
		l, deaf := watches(10, 10)
		_, handler := limited(t, f, l)
		began := time.Now()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/watch", nil)
		r.RemoteAddr = "10.0.0.1:1"
		handler.ServeHTTP(deafWriter{httptest.NewRecorder(), make(chan time.Time, 1)}, r)
		if took := time.Since(began); took > 15*time.Second || took < time.Second {
			t.Errorf("it was ended after %v", took)
		}
		if len(*deaf) != 1 || (*deaf)[0] != "connection 10.0.0.1:1" || !f.closed || l.Watches.Usage().Taken != 0 {
			t.Errorf("deaf: %v, closed %v, %+v", *deaf, f.closed, l.Watches.Usage())
		}
	})
}

// stuckStream is a stream whose client takes nothing. As in grpc, a send ends when the
// handler has returned.
type stuckStream struct {
	sent
	over chan struct{}
}

func (s *stuckStream) SendMsg(any) error {
	<-s.over
	return status.Error(codes.Canceled, "the stream has ended")
}

func TestDeafWatchersAreEndedOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{n: 1}
		l, deaf := watches(10, 10)
		s, _ := limited(t, f, l)
		stream := &stuckStream{sent{ctx: peer.With(t.Context(), peer.Caller{Identity: "spiffe://a/b"})}, make(chan struct{})}
		began := time.Now()
		err := s.Watch(&hdsdv1.WatchRequest{}, stream)
		if took := time.Since(began); took > 15*time.Second || status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "has not read") {
			t.Errorf("after %v: %v", took, err)
		}
		close(stream.over)
		s.Close() // waits for the sender
		if len(*deaf) != 1 || (*deaf)[0] != "spiffe://a/b" || !f.closed || l.Watches.Usage().Taken != 0 {
			t.Errorf("deaf: %v, closed %v, %+v", *deaf, f.closed, l.Watches.Usage())
		}
		if err := s.Watch(&hdsdv1.WatchRequest{}, stream); status.Code(err) != codes.Unavailable {
			t.Errorf("a closed service: %v", err)
		}
	})
}

// TestWatchersMakeRoom: too many are refused, and whoever has most makes room for who has
// less. Each is told why, and by which limit.
func TestWatchersMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := watches(4, 3)
		s, handler := limited(t, &quietFleet{fleet{n: 1}}, l)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		watch := func(from string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			all.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/watch", nil)
				r.RemoteAddr = from
				handler.ServeHTTP(w, r)
			})
			synctest.Wait()
			return w
		}
		var greedy []*httptest.ResponseRecorder
		for range 3 {
			greedy = append(greedy, watch("10.0.0.1:1"))
		}
		if w := watch("10.0.0.1:1"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "raise limits.max_watchers_per_caller") || w.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d %s", w.Code, w.Body)
		}
		watch("10.0.0.2:1")
		if got := watch("10.0.0.2:1"); got.Code != http.StatusOK {
			t.Errorf("the modest one got %d", got.Code)
		}
		if text := greedy[2].Body.String(); !strings.Contains(text, "event: error\n") || !strings.Contains(text, `{"code":8,`) || !strings.Contains(text, "raise limits.max_watchers if") {
			t.Errorf("the one that had to go was told %s", text)
		}
		var overGRPC error
		all.Go(func() {
			overGRPC = s.Watch(&hdsdv1.WatchRequest{}, &sent{ctx: peer.With(ctx, peer.Caller{Identity: "c"})})
		})
		synctest.Wait()
		for range 2 { // one takes the place of another that has two, the next is refused
			watch("10.0.0.3:1")
		}
		cancel()
		all.Wait()
		s.Close()
		if status.Code(overGRPC) != codes.Canceled {
			t.Errorf("the one that had the least ended with %v", overGRPC)
		}
		if got := l.Watches.Usage(); got.Taken != 0 {
			t.Errorf("%+v is left", got)
		}
	})
}

// quietFleet is one of which many watch, and nothing is noted.
type quietFleet struct{ fleet }

func (f *quietFleet) Watch(context.Context, api.WatchQuery) (api.Watcher, error) {
	return &script{closed: new(bool)}, nil
}
