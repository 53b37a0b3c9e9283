package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/wire"
)

// script is a Watcher that shows what is in it, then waits.
type script struct {
	batches [][]*api.Event
	end     error
	closed  *bool
}

func (s *script) Next(ctx context.Context, _ int) (*api.Batch, error) {
	if len(s.batches) > 0 {
		next := s.batches[0]
		s.batches = s.batches[1:]
		return &api.Batch{Events: next}, nil
	}
	if s.end != nil {
		return nil, s.end
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *script) Close() { *s.closed = true }

func (f *fleet) Watch(_ context.Context, q api.WatchQuery) (api.Watcher, error) {
	f.watches = append(f.watches, q)
	switch {
	case q.Cluster != "" && q.Cluster != "web":
		return nil, api.ErrUnknownCluster
	case q.Token == "bad":
		return nil, api.ErrBadToken
	case q.Token == "old":
		return nil, api.ErrTooOld
	}
	if q.ByCluster {
		changed := &api.ClusterChanges{Clusters: []api.Cluster{{Name: "web", Endpoints: 2, HealthCounts: api.HealthCounts{Unhealthy: 1}}}, More: true}
		return &script{end: f.end, closed: &f.closed, batches: [][]*api.Event{{{Synced: true, Token: "t1"}}, {{Clusters: changed, Token: "t2"}}}}, nil
	}
	e := f.endpoint(0)
	return &script{end: f.end, closed: &f.closed, batches: [][]*api.Event{
		{{Endpoint: &e}},
		{{Synced: true, Token: "t1"}},
		{{Token: "t2", Transition: &health.Transition{
			Time: noon, Endpoint: e.Endpoint, From: health.Healthy, To: health.Unhealthy, Reason: "two\nlines",
		}}},
	}}, nil
}

const events = `event: endpoint
data: {"cluster":"web","address":"10.0.0.000:80","locality":{"region":"","zone":"a","subZone":""},"health":"HEALTHY","since":"2026-01-02T12:00:00.345Z","reason":"3 of 3 checkers say HEALTHY","observations":[],"zones":[],"held":true,"heldSince":"2026-01-02T12:00:00.345Z"}

event: synced
id: t1
data: {}

event: transition
id: t2
data: {"time":"2026-01-02T12:00:00.345Z","cluster":"web","address":"10.0.0.000:80","locality":{"region":"","zone":"a","subZone":""},"from":"HEALTHY","to":"UNHEALTHY","reason":"two\nlines","observations":[]}

`

// TestEventStream also looks at what it writes while nothing happens.
func TestEventStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{n: 1}
		handler, err := api.NewService(f).Handler()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40e9)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/watch?cluster=web&address=", nil)
		request.Header.Set("Last-Event-ID", "t0")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if want := events + ": heartbeat\n\n: heartbeat\n\n"; answer.Body.String() != want {
			t.Errorf("got\n%s\nwant\n%s", answer.Body, want)
		}
		if kind := answer.Header().Get("Content-Type"); kind != "text/event-stream" || !answer.Flushed {
			t.Errorf("Content-Type %q, flushed %v", kind, answer.Flushed)
		}
		if len(f.watches) != 1 || f.watches[0] != (api.WatchQuery{Cluster: "web", Token: "t0"}) || !f.closed {
			t.Errorf("asked %+v, closed %v", f.watches, f.closed)
		}
	})
}

func TestEventStreamSaysWhyItEnds(t *testing.T) {
	for message, end := range map[string]error{
		`{"code":14,"message":"hdsd is stopping","details":[`: status.Error(codes.Unavailable, "hdsd is stopping"),
		`{"code":11,"message":"the history`:                   api.ErrTooOld,
		`{"code":13,"message":"disk","details":[`:             errors.New("disk"),
	} {
		f := &fleet{n: 1, end: end}
		handler, err := api.NewService(f).Handler()
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/v1/watch", nil))
		if rest, ok := strings.CutPrefix(answer.Body.String(), events); !ok || !strings.HasPrefix(rest, "event: error\ndata: "+message) || !strings.HasSuffix(rest, "}\n\n") {
			t.Errorf("%v: %s", end, answer.Body)
		}
		if !f.closed {
			t.Errorf("%v: the watcher is not closed", end)
		}
	}
}

func TestBadWatchesAreRefused(t *testing.T) {
	for path, want := range map[string]int{
		"/v1/watch?cluster=nowhere":                http.StatusNotFound,
		"/v1/watch?resumeToken=bad":                http.StatusBadRequest,
		"/v1/watch?resume_token=old":               http.StatusBadRequest,
		"/v1/watch?clutser=web":                    http.StatusBadRequest,
		"/v1/watch?cluster=web&cluster=web":        http.StatusBadRequest,
		"/v1/watch?cluster=%zz":                    http.StatusBadRequest,
		"/v1/watch/":                               http.StatusNotFound,
		"/v1/watch?cluster=nowhere&resumeToken=t2": http.StatusNotFound,
	} {
		if code, body, text := get(t, &fleet{n: 1}, path); code != want || body["message"] == "" || len(body) != 3 {
			t.Errorf("GET %s: %d, want %d: %s", path, code, want, text)
		}
	}
	handler, err := api.NewService(&fleet{n: 1}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/watch", nil))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d %s", answer.Code, answer.Body)
	}
}

func TestBadTokenIsReportedByItsParameter(t *testing.T) {
	handler, err := api.NewService(&fleet{n: 1}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	for path, header := range map[string]string{"?resumeToken=bad": "resumeToken", "?resume_token=bad": "resume_token", "?resumeToken=t2": "Last-Event-ID"} {
		request := httptest.NewRequest(http.MethodGet, "/v1/watch"+path, nil)
		if strings.HasPrefix(header, "Last") {
			request.Header.Set(header, "bad")
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if want := `"message":"` + header + ` is not a token that this history gave out: watch again without it"`; answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s by %s: %d %s", path, header, answer.Code, answer.Body)
		}
	}
	err = api.NewService(&fleet{n: 1}).Watch(&hdsdv1.WatchRequest{ResumeToken: "bad"}, &sent{ctx: t.Context()})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "resume_token is not") {
		t.Error(err)
	}
}

// sent collects what a gRPC stream is sent.
type sent struct {
	grpc.ServerStreamingServer[hdsdv1.WatchResponse]
	ctx context.Context
	all []*hdsdv1.WatchResponse
	err error

	served bool // was told so before anything was sent
}

func (s *sent) Context() context.Context { return s.ctx }

func (s *sent) SendHeader(metadata.MD) error {
	s.served = len(s.all) == 0
	return nil
}

func (s *sent) SendMsg(encoded any) error {
	m := &hdsdv1.WatchResponse{}
	if err := proto.Unmarshal(*encoded.(*wire.Bytes), m); err != nil {
		return err
	}
	s.all = append(s.all, m)
	return s.err
}

func TestWatchOverGRPC(t *testing.T) {
	f := &fleet{n: 1, end: api.ErrTooOld}
	stream := &sent{ctx: t.Context()}
	service := api.NewService(f)
	err := service.Watch(&hdsdv1.WatchRequest{Cluster: "web", Address: "a", ResumeToken: "t"}, stream)
	service.Close()
	if status.Code(err) != codes.OutOfRange || !f.closed || f.watches[0] != (api.WatchQuery{Cluster: "web", Address: "a", Token: "t"}) {
		t.Errorf("%v, asked %+v, closed %v", err, f.watches, f.closed)
	}
	if !stream.served || len(stream.all) != 3 || stream.all[0].GetEndpoint().GetAddress() != "10.0.0.000:80" || stream.all[0].GetToken() != "" ||
		stream.all[1].GetSynced() == nil || stream.all[1].GetToken() != "t1" ||
		stream.all[2].GetTransition().GetReason() != "two\nlines" || stream.all[2].GetToken() != "t2" {
		t.Errorf("sent %v", stream.all)
	}
	stream = &sent{ctx: t.Context(), err: io.ErrClosedPipe}
	service = api.NewService(&fleet{n: 1})
	err = service.Watch(&hdsdv1.WatchRequest{}, stream)
	service.Close()
	if err == nil || !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) || len(stream.all) != 1 {
		t.Errorf("a client that is gone: %v after %d", err, len(stream.all))
	}
}

// TestTheEndOfAWatchEndsItsConnection: what is written needs no frames, which would take
// more writes.
func TestTheEndOfAWatchEndsItsConnection(t *testing.T) {
	handler, err := api.NewService(&fleet{n: 1, end: errors.New("disk")}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/v1/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.HasPrefix(string(text), events) {
		t.Errorf("got %s, %v", text, err)
	}
	if !answer.Close || len(answer.TransferEncoding) > 0 || answer.ContentLength != -1 {
		t.Errorf("closes: %v, encoding %v, length %d", answer.Close, answer.TransferEncoding, answer.ContentLength)
	}
}
