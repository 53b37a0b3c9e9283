package coordinator_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// event is a server-sent event.
type event struct {
	name, id string
	data     struct{ Address, Health, From, To, Message string }
}

// events opens a stream of events. What is read of it ends with the stream.
func (s *site) events(ctx context.Context, path, resume string) <-chan event {
	s.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTPAddress()+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", resume)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: %v, %v", path, answer, err)
	}
	read := make(chan event)
	go func() {
		defer close(read)
		defer answer.Body.Close()
		var now event
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				now.name = value
			case "id":
				now.id = value
			case "data":
				_ = json.Unmarshal([]byte(value), &now.data)
			case "":
				if now.name == "" {
					continue // a heartbeat
				}
				select {
				case read <- now:
				case <-ctx.Done():
					return
				}
				now = event{}
			}
		}
	}()
	return read
}

// expect waits for the next event.
func (s *site) expect(read <-chan event, name string) event {
	s.t.Helper()
	select {
	case e, ok := <-read:
		if !ok || e.name != name || (e.id == "") != (name == "endpoint" || name == "error") {
			s.t.Fatalf("got %+v, want %s", e, name)
		}
		return e
	case <-time.After(patience):
		s.t.Fatalf("waited in vain for %s", name)
	}
	return event{}
}

// TestWatchOverRestart covers a watch that a restart cuts off: it resumes without a gap.
func TestWatchOverRestart(t *testing.T) {
	t.Parallel()
	address, upstreamStatus := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address)+static("idle", "127.0.0.1:1"))
	s.ready()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := s.events(ctx, "/v1/watch?cluster=web", "")
	if e := s.expect(read, "endpoint"); e.data.Address != address || e.data.Health != "UNKNOWN" {
		t.Errorf("first %+v", e)
	}
	begin := s.expect(read, "synced").id
	s.checker("c1")
	up := s.expect(read, "transition")
	if up.data.Address != address || up.data.From != "UNKNOWN" || up.data.To != "HEALTHY" {
		t.Errorf("then %+v", up)
	}
	upstreamStatus.Store(http.StatusServiceUnavailable)
	if down := s.expect(read, "transition"); down.data.From != "HEALTHY" || down.data.To != "UNHEALTHY" {
		t.Errorf("then %+v", down)
	}

	s.stop()
	if e := s.expect(read, "error"); !strings.Contains(e.data.Message, "stopping") {
		t.Errorf("at the end %+v", e)
	}
	if _, more := <-read; more {
		t.Error("it goes on after the end")
	}
	if err := <-s.ended; err != nil {
		t.Errorf("Run: %v", err)
	}

	s = newSite(t, s.dir, quick, static("web", address)+static("idle", "127.0.0.1:1"))
	s.ready()
	if e := s.expect(s.events(ctx, "/v1/watch?cluster=web", up.id), "transition"); e.data.From != "HEALTHY" || e.data.To != "UNHEALTHY" {
		t.Errorf("resumed with %+v", e)
	}
	read = s.events(ctx, "/v1/watch?cluster=web&resumeToken="+url.QueryEscape(begin), "")
	for _, want := range []string{"HEALTHY", "UNHEALTHY"} {
		if e := s.expect(read, "transition"); e.data.To != want {
			t.Errorf("from the beginning %+v, want %s", e, want)
		}
	}
	upstreamStatus.Store(http.StatusOK)
	s.checker("c1") // another would be a newcomer that contradicts what this one found
	if e := s.expect(read, "transition"); e.data.From != "UNHEALTHY" || e.data.To != "HEALTHY" {
		t.Errorf("live again: %+v", e)
	}
	if code, text := s.get("/v1/watch?resumeToken=z" + begin[1:]); code != http.StatusBadRequest {
		t.Errorf("a bad token: %d %s", code, text)
	}
}

func TestWatchOverGRPC(t *testing.T) {
	t.Parallel()
	s, address, seen := flapped(t, "web")
	query := hdsdv1.NewQueryClient(s.dial())
	stream, err := query.Watch(t.Context(), &hdsdv1.WatchRequest{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.GetToken() != "" || first.GetEndpoint().GetHealth() != seen[1].GetTo() || len(first.GetEndpoint().GetObservations()) != 1 {
		t.Errorf("first %v, %v", first, err)
	}
	second, err := stream.Recv()
	if err != nil || second.GetSynced() == nil || second.GetToken() == "" {
		t.Errorf("then %v, %v", second, err)
	}
	nowhere, err := query.Watch(t.Context(), &hdsdv1.WatchRequest{Cluster: "nowhere"})
	if err == nil {
		_, err = nowhere.Recv()
	}
	if status.Code(err) != codes.NotFound {
		t.Errorf("an unknown cluster: %v", err)
	}
	s.stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable && !errors.Is(err, io.EOF) {
		t.Errorf("when hdsd stops: %v", err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
