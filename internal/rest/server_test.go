package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"hdsd/internal/rest"
	"hdsd/peer/limit"
	"hdsd/test/stall"
)

// echo answers with the body, and refuses some.
func echo(_ *http.Request, body []byte) (rest.Answer, error) {
	switch string(body) {
	case "known":
		return nil, nil
	case "busy":
		return nil, status.Error(codes.ResourceExhausted, "one at a time")
	case "much":
		return nil, fmt.Errorf("wrapped: %w", rest.TooLarge("up to %d", 3))
	}
	return rest.Text([]byte(`"`), body, []byte(`"`)), nil
}

func serving(serve func(*http.Request, []byte) (rest.Answer, error)) *rest.Server {
	return &rest.Server{Paths: map[string]func(*http.Request, []byte) (rest.Answer, error){"/a": serve, "/b": serve}, MaxBytes: 10}
}

func TestServer(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               codes.Code // 0: the text is all there is
		text               string
	}{
		"a request":       {"POST", "/a", "hi", 200, 0, `"hi"`},
		"another path":    {"POST", "/b", "", 200, 0, `""`},
		"the largest":     {"POST", "/a", "0123456789", 200, 0, `"0123456789"`},
		"what it has":     {"POST", "/a", "known", 304, 0, ``},
		"too large":       {"POST", "/a", "0123456789x", 413, codes.ResourceExhausted, "up to 10 bytes"},
		"too much in it":  {"POST", "/a", "much", 413, codes.ResourceExhausted, "up to 3"},
		"too many":        {"POST", "/a", "busy", 429, codes.ResourceExhausted, "one at a time"},
		"an unknown path": {"POST", "/c", "hi", 404, codes.NotFound, "use /a or /b"},
		"a method":        {"GET", "/a", "", 405, codes.Unimplemented, "GET is not served at /a: use POST"},
	} {
		recorder := httptest.NewRecorder()
		serving(echo).ServeHTTP(recorder, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		said := struct {
			Code    codes.Code
			Message string
			Details []map[string]any
		}{Message: recorder.Body.String()}
		if c.code != 0 {
			decoder := json.NewDecoder(bytes.NewReader(recorder.Body.Bytes()))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&said); err != nil {
				t.Errorf("%s: %s: %v", name, recorder.Body, err)
			}
		}
		if recorder.Code != c.status || said.Code != c.code || !strings.Contains(said.Message, c.text) || c.code == 0 && said.Message != c.text {
			t.Errorf("%s: got %d %s, want %d, code %d with %q", name, recorder.Code, recorder.Body, c.status, c.code, c.text)
		}
		header := recorder.Result().Header
		if got := header.Get("Content-Type"); c.status != http.StatusNotModified && got != "application/json" {
			t.Errorf("%s: Content-Type %q", name, got)
		}
		if got, want := header.Get("Connection") == "close", c.status == 404 || c.status == 405 || c.text == "up to 10 bytes"; got != want {
			t.Errorf("%s: closes the connection: %t", name, got)
		}
		if got := header.Get("Allow"); (got == "POST") != (c.status == 405) {
			t.Errorf("%s: Allow %q", name, got)
		}
	}
}

func TestATruncatedBody(t *testing.T) {
	recorder := httptest.NewRecorder()
	serving(echo).ServeHTTP(recorder, httptest.NewRequest("POST", "/a", iotest.ErrReader(errors.New("cut off"))))
	if answer := recorder.Result(); answer.StatusCode != 400 || answer.Header.Get("Connection") != "close" || !strings.Contains(recorder.Body.String(), "cut off") {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, recorder.Body)
	}
}

// TestBodiesAreReadWhole, whether their length is announced or not, and take little more than
// their size.
func TestBodiesAreReadWhole(t *testing.T) {
	const size = 32 << 20
	sent := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for _, announced := range []bool{true, false} {
		s := serving(func(_ *http.Request, got []byte) (rest.Answer, error) {
			if !bytes.Equal(got, sent) {
				t.Errorf("announced %v: got %d bytes", announced, len(got))
			}
			return nil, nil
		})
		s.MaxBytes = size
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", bytes.NewReader(sent))
		if !announced {
			request.ContentLength = -1
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.ServeHTTP(httptest.NewRecorder(), request)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > size+size/4 {
			t.Errorf("announced %v: a body of %d bytes takes %d", announced, size, taken)
		}
	}
}

// TestLargeBodiesUseTheSameMemory, one after another, whether their length is announced or not: what
// they leave behind would else add up until the garbage is collected.
func TestLargeBodiesUseTheSameMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const size, bodies = 8 << 20, 10
	s := serving(func(*http.Request, []byte) (rest.Answer, error) { return nil, nil })
	s.MaxBytes, s.Budget = size, rest.NewBudget(limit.NewRoom(4*size))
	sent := make([]byte, size)
	for _, announced := range []int64{size, -1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range bodies {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", bytes.NewReader(sent))
			request.ContentLength = announced
			s.ServeHTTP(httptest.NewRecorder(), request)
		}
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; announced > 0 && taken > 2*size || taken > 8*size { // it grows to 4 MiB before
			t.Errorf("announced %d: %d bodies of %d bytes take %d", announced, bodies, size, taken)
		}
	}
}

func TestSlowClientsTimeOut(t *testing.T) {
	within := func(what string, got, least time.Duration) {
		if got < least || got > least+time.Second {
			t.Errorf("%s: borne for %v, want %v", what, got, least)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := serving(echo)
		s.MaxBytes = 100_000
		borne, answer := stall.SlowBody(t, s, "/a")
		within("a slow body", borne, 10*time.Second)
		if !strings.HasPrefix(answer, "HTTP/1.1 400") {
			t.Errorf("a slow body is told %q", answer)
		}
		borne, _ = stall.SlowBody(t, s, "/c")
		within("a slow body that is not read", borne, 10*time.Second)
		within("an unread answer", stall.UnreadAnswer(t, s, "/a", "hi"), 2*time.Minute)
		within("an unread error", stall.UnreadAnswer(t, s, "/c", "hi"), 2*time.Minute)
		s.ReadTimeout, s.WriteTimeout = time.Second, 5*time.Second
		borne, _ = stall.SlowBody(t, s, "/a")
		within("a slow body, as set", borne, time.Second)
		within("an unread answer, as set", stall.UnreadAnswer(t, s, "/a", "hi"), 5*time.Second)
	})
}

// TestAnAnswerMayTakeLonger than a body may. The connection stays open, and serves the
// next request.
func TestAnAnswerMayTakeLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(func(r *http.Request, body []byte) (rest.Answer, error) {
			select {
			case <-time.After(time.Hour):
				return rest.Text(body), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		listener, dialed := bufconn.Listen(1<<10), 0
		server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialed++
			return listener.DialContext(ctx)
		}}
		for _, body := range []string{"{}", ""} {
			answer, err := (&http.Client{Transport: transport}).Post("http://hdsd/a", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			_, err = text.ReadFrom(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != 200 || text.String() != body {
				t.Errorf("%d %s, %v", answer.StatusCode, &text, err)
			}
			// A deadline of bufconn takes effect only some time after it was set. The
			// server sets one after each answer, which must not end the next request.
			synctest.Wait()
		}
		if dialed != 1 {
			t.Errorf("%d connections", dialed)
		}
		transport.CloseIdleConnections()
		server.Close()
		<-served
	})
}
