package rest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/internal/rest"
	"hdsd/peer/limit"
)

// within is a server with a budget of 1,000,000 bytes, a gate for its handler, and the number of calls of the
// handler that have not passed the gate.
func within() (*rest.Server, *limit.Room, chan struct{}, *atomic.Int32) {
	room := limit.NewRoom(1_000_000)
	open, calls := make(chan struct{}), new(atomic.Int32)
	return &rest.Server{
		Paths: map[string]func(*http.Request, []byte) (rest.Answer, error){"/a": func(_ *http.Request, body []byte) (rest.Answer, error) {
			calls.Add(1)
			<-open
			calls.Add(-1)
			return rest.Text(body[:1]), nil
		}},
		MaxBytes: 10 << 20, Budget: rest.NewBudget(room),
	}, room, open, calls
}

func post(s *rest.Server, from string, size int, announced bool) <-chan int {
	r := httptest.NewRequest(http.MethodPost, "/a", bytes.NewReader(make([]byte, size)))
	if r.RemoteAddr = from; !announced {
		r.ContentLength = -1
	}
	done := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		done <- w.Code
	}()
	return done
}

func TestBodiesHaveABudget(t *testing.T) {
	for _, announced := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, room, open, _ := within()
			first := post(s, "10.0.0.1:1", 400_000, announced)
			synctest.Wait()
			if got := room.Taken(); got < 400_000 {
				t.Fatalf("%d bytes are taken", got)
			}
			start := time.Now()
			if code := <-post(s, "10.0.0.2:1", 400_000, announced); code != http.StatusTooManyRequests || time.Since(start) != 10*time.Second {
				t.Errorf("without room: %d after %v", code, time.Since(start))
			}
			second := post(s, "10.0.0.2:1", 400_000, announced)
			synctest.Wait()
			open <- struct{}{}
			if code := <-first; code != http.StatusOK {
				t.Errorf("the first: %d", code)
			}
			open <- struct{}{}
			if code := <-second; code != http.StatusOK {
				t.Errorf("the one that waited: %d", code)
			}
			if got := room.Taken(); got != 0 {
				t.Errorf("%d bytes are left", got)
			}
		})
	}
}

func TestLargeBodiesAreProcessedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, open, calls := within()
		one, other, small := post(s, "10.0.0.1:1", 100_000, true), post(s, "10.0.0.2:1", 100_000, true), post(s, "10.0.0.3:1", 10, true)
		open <- struct{}{}
		open <- struct{}{}
		synctest.Wait()
		select {
		case open <- struct{}{}: // the large one that waited has its turn now
		default:
			t.Error("the second large body is not processed after the first")
		}
		for _, done := range []<-chan int{one, other, small} {
			if code := <-done; code != http.StatusOK {
				t.Error(code)
			}
		}
		one, other = post(s, "10.0.0.1:1", 100_000, true), post(s, "10.0.0.2:1", 100_000, true)
		synctest.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d of two large bodies are processed at once", n)
		}
		open <- struct{}{}
		open <- struct{}{}
		<-one
		<-other
	})
}

// TestALargeAnnouncementIsRefusedUnread: nobody waits for what is too large.
func TestALargeAnnouncementIsRefusedUnread(t *testing.T) {
	s, room, _, _ := within()
	r := httptest.NewRequest(http.MethodPost, "/a", io.MultiReader(strings.NewReader("x"), unread{t}))
	r.ContentLength = 11 << 20
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || room.Taken() != 0 {
		t.Errorf("%d, %d bytes are taken", w.Code, room.Taken())
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}
