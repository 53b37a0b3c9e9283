package api_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
	"hdsd/internal/wire"
	"hdsd/peer"
	"hdsd/peer/limit"
	"hdsd/peer/limit/inflight"
)

// slow is a backend whose queries of endpoints end when the test says so.
type slow struct {
	fleet
	release chan struct{}
	address string // of all endpoints

	mu    sync.Mutex
	order []int // page sizes, as their turns came
}

func (s *slow) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	s.mu.Lock()
	s.order = append(s.order, q.Limit)
	s.mu.Unlock()
	select {
	case <-s.release:
		rows := make([]api.EndpointHealth, min(q.Limit, s.n))
		for i := range rows {
			rows[i].Endpoint.Address = s.address
		}
		return rows, false, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// limits makes some that can be reached.
func limits(queries, each, rows int64) api.Limits {
	return api.Limits{
		Queries: limit.NewPool(limit.Limit{Unit: "queries", Field: "limits.max_queries", Total: queries, PerCallerField: "limits.max_queries_per_caller", PerCaller: each}),
		Rows:    limit.NewPool(limit.Limit{Unit: "rows", Field: "limits.max_query_rows", Total: rows}),
	}
}

// asking is one query over HTTP, by a caller that is named by its address.
func asking(t *testing.T, handler http.Handler, from, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func limited(t *testing.T, b api.Backend, l api.Limits) (*api.Service, http.Handler) {
	t.Helper()
	s := api.NewService(b)
	s.Limit(l)
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return s, handler
}

func TestTooManyQueriesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := &slow{release: make(chan struct{})}, limits(3, 1, 100)
		s, handler := limited(t, b, l)
		var all sync.WaitGroup
		ask := func(from string) { all.Go(func() { asking(t, handler, from, "/v1/endpoints") }); synctest.Wait() }
		ask("10.0.0.1:1")
		refusal := func(from, field string) {
			t.Helper()
			w := asking(t, handler, from, "/v1/endpoints")
			if text := w.Body.String(); w.Code != http.StatusTooManyRequests || !strings.Contains(text, "raise "+field) || w.Header().Get("Retry-After") != "5" {
				t.Errorf("%s got %d %s %v", from, w.Code, text, w.Header())
			}
			_, err := hdsdv1.QueryServer(s).ListClusters(peer.With(t.Context(), peer.Caller{Address: from}), nil)
			if err != nil {
				t.Errorf("the service itself has no limits: %v", err)
			}
		}
		refusal("10.0.0.1:1", "limits.max_queries_per_caller")
		ask("10.0.0.2:1")
		ask("10.0.0.3:1")
		refusal("10.0.0.4:1", "limits.max_queries")
		close(b.release)
		all.Wait()
		if got := l.Queries.Usage(); got.Taken != 0 || s.QueriesWaiting() != 0 {
			t.Errorf("%+v is left, %d wait", got, s.QueriesWaiting())
		}
		if w := asking(t, handler, "10.0.0.3:1", "/v1/endpoints"); w.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", w.Code, w.Body)
		}
	})
}

// TestAPersonGoesBeforeACrowd of large queries, and each of the crowd gets its turn.
func TestAPersonGoesBeforeACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slow{release: make(chan struct{})}
		s, handler := limited(t, b, limits(1000, 100, 1<<20))
		var all sync.WaitGroup
		ask := func(from, size string) {
			all.Go(func() {
				if w := asking(t, handler, from, "/v1/endpoints?pageSize="+size); w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", from, w.Code, w.Body)
				}
			})
			synctest.Wait()
		}
		for i := range 40 {
			ask("10.0.0.1:"+string(rune('0'+i)), "10000")
		}
		waiting := s.QueriesWaiting()
		ask("10.0.0.2:1", "20")
		if len(b.order) == 0 || b.order[len(b.order)-1] != 20 || s.QueriesWaiting() != waiting {
			t.Errorf("the turns were %v, %d wait", b.order, s.QueriesWaiting())
		}
		close(b.release)
		all.Wait()
		if len(b.order) != 41 {
			t.Errorf("%d turns", len(b.order))
		}
	})
}

func TestImpatientQueriesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := &slow{release: make(chan struct{})}, limits(1000, 1000, 1<<20)
		l.Patience = 7 * time.Second
		_, handler := limited(t, b, l)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/endpoints?pageSize=10000", nil)
				handler.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		synctest.Wait()
		began := time.Now()
		w := asking(t, handler, "10.0.0.2:1", "/v1/endpoints?pageSize=10000")
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "waited 7s for its turn") || time.Since(began) != l.Patience {
			t.Errorf("after %v: %d %s", time.Since(began), w.Code, w.Body)
		}
		cancel()
		all.Wait()
	})
}

// TestQueriesMakeRoom: whoever has most ends one, whether it waits or works.
func TestQueriesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &slow{release: make(chan struct{})}
		_, handler := limited(t, b, limits(30, 0, 1<<20))
		var all sync.WaitGroup
		codes := map[string]map[int]int{"10.0.0.1:1": {}, "10.0.0.2:1": {}}
		var mu sync.Mutex
		for _, from := range []string{"10.0.0.1:1", "10.0.0.2:1"} {
			for range 30 {
				all.Go(func() {
					w := asking(t, handler, from, "/v1/endpoints")
					mu.Lock()
					defer mu.Unlock()
					codes[from][w.Code]++
				})
			}
			synctest.Wait()
		}
		close(b.release)
		all.Wait()
		for from, got := range codes {
			if got[200] != 15 || got[429] != 15 {
				t.Errorf("%s: %v, want half each", from, got)
			}
		}
	})
}

// reader is a response that a caller takes when it likes.
type reader struct {
	*httptest.ResponseRecorder
	wait     chan struct{}
	deadline time.Time
}

func (r *reader) Write(b []byte) (int, error) {
	<-r.wait
	if !r.deadline.IsZero() {
		return 0, context.DeadlineExceeded
	}
	return r.ResponseRecorder.Write(b)
}

func (r *reader) SetWriteDeadline(at time.Time) error {
	r.deadline = at
	close(r.wait)
	return nil
}

// TestSlowReadersHoldRowsButNoTurn: they keep nobody waiting, and their answers count.
func TestSlowReadersHoldRowsButNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := &slow{fleet: fleet{n: 600}, release: make(chan struct{})}, limits(1000, 0, 1000)
		close(b.release)
		_, handler := limited(t, b, l)
		var all sync.WaitGroup
		w := &reader{ResponseRecorder: httptest.NewRecorder(), wait: make(chan struct{})}
		all.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/endpoints?pageSize=10000", nil)
			r.RemoteAddr = "10.0.0.9:1"
			handler.ServeHTTP(w, r)
		})
		synctest.Wait()
		if got := l.Rows.Usage().Taken; got != 600 {
			t.Errorf("%d rows are being sent", got)
		}
		if small := asking(t, handler, "10.0.0.1:1", "/v1/endpoints?pageSize=300"); small.Code != http.StatusOK || !w.deadline.IsZero() {
			t.Errorf("there was room: %d, cut off %v", small.Code, !w.deadline.IsZero())
		}
		b.n = 500
		if refused := asking(t, handler, "10.0.0.9:1", "/v1/endpoints?pageSize=10000"); refused.Code != http.StatusTooManyRequests || !strings.Contains(refused.Body.String(), "limits.max_query_rows") {
			t.Errorf("the one that has most: %d %s", refused.Code, refused.Body)
		}
		b.n = 1000
		if large := asking(t, handler, "10.0.0.2:1", "/v1/endpoints?pageSize=10000"); large.Code != http.StatusTooManyRequests {
			t.Errorf("more than the other has: %d", large.Code)
		}
		if !w.deadline.IsZero() {
			t.Error("an answer was cut off for nothing")
		}
		close(w.wait)
		all.Wait()
		if got := l.Rows.Usage(); got.Taken != 0 || got.Callers != 0 {
			t.Errorf("%+v is left", got)
		}
	})
}

// TestAnAnswerIsCutOff if it has to make room.
func TestAnAnswerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, l := &slow{fleet: fleet{n: 300}, release: make(chan struct{})}, limits(1000, 0, 1000)
		close(b.release)
		_, handler := limited(t, b, l)
		var all sync.WaitGroup
		var readers []*reader
		for range 3 {
			w := &reader{ResponseRecorder: httptest.NewRecorder(), wait: make(chan struct{})}
			readers = append(readers, w)
			all.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/endpoints?pageSize=10000", nil)
				r.RemoteAddr = "10.0.0.9:1"
				handler.ServeHTTP(w, r)
			})
			synctest.Wait()
		}
		if w := asking(t, handler, "10.0.0.2:1", "/v1/endpoints?pageSize=10000"); w.Code != http.StatusOK {
			t.Errorf("a caller that has less: %d %s", w.Code, w.Body)
		}
		if readers[2].deadline.IsZero() || !readers[0].deadline.IsZero() || !readers[1].deadline.IsZero() {
			t.Error("want the newest answer cut off, and no other")
		}
		close(readers[0].wait)
		close(readers[1].wait)
		all.Wait()
	})
}

// overGRPC serves a service, and connects a client to it.
func overGRPC(t *testing.T, s *api.Service) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(append(inflight.NewBudget(1<<20).ServerOptions(insecure.NewCredentials()), wire.ServerOption(),
		grpc.ChainUnaryInterceptor(api.Delivered(inflight.After, inflight.End)))...)
	s.Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		connection.Close()
		server.Stop()
		serving.Wait()
	})
	return connection
}

// TestQueriesOverGRPC count until they are sent, and say when to try again.
func TestQueriesOverGRPC(t *testing.T) {
	b, l := &slow{fleet: fleet{n: 5}, release: make(chan struct{})}, limits(10, 1, 100)
	s, _ := limited(t, b, l)
	client := hdsdv1.NewQueryClient(overGRPC(t, s))
	var first sync.WaitGroup
	first.Go(func() {
		if answer, err := client.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{}); err != nil || len(answer.GetEndpoints()) != 5 {
			t.Error(answer, err)
		}
	})
	waitFor(t, func() bool { return l.Queries.Usage().Taken == 1 })
	_, err := client.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{})
	said := status.Convert(err)
	if said.Code() != codes.ResourceExhausted || !strings.Contains(said.Message(), "limits.max_queries_per_caller") || len(said.Details()) != 2 ||
		reason.Of(err) != reason.LimitReached || said.Details()[1].(*errdetails.RetryInfo).GetRetryDelay().GetSeconds() != 5 {
		t.Errorf("got %v %v", err, said.Details())
	}
	close(b.release)
	first.Wait()
	waitFor(t, func() bool { return l.Queries.Usage().Taken == 0 && l.Rows.Usage().Taken == 0 })
	if _, err := client.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := client.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{PageSize: -1}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

// TestAQueryOverGRPCMakesRoomAlone, while it waits or is worked at: what else is on its connection
// goes on.
func TestAQueryOverGRPCMakesRoomAlone(t *testing.T) {
	b, l := &slow{fleet: fleet{n: 5}, release: make(chan struct{})}, limits(2, 0, 1000)
	s, handler := limited(t, b, l)
	client := hdsdv1.NewQueryClient(overGRPC(t, s))
	var all sync.WaitGroup
	var errs [2]error
	for i := range errs {
		all.Go(func() { _, errs[i] = client.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{PageSize: 5}) })
		waitFor(t, func() bool { return l.Queries.Usage().Taken == int64(i+1) })
	}
	var other sync.WaitGroup
	other.Go(func() {
		if w := asking(t, handler, "10.0.0.2:1", "/v1/endpoints?pageSize=5"); w.Code != http.StatusOK {
			t.Errorf("a caller that has less: %d %s", w.Code, w.Body)
		}
	})
	waitFor(t, func() bool { return l.Queries.Usage().Callers == 2 })
	close(b.release)
	all.Wait()
	other.Wait()
	if errs[0] != nil || status.Code(errs[1]) != codes.ResourceExhausted {
		t.Errorf("the first query: %v; the one that makes room: %v", errs[0], errs[1])
	}
}

// TestUnreadAnswersOverGRPC count as long as they wait for a client that does not read.
func TestUnreadAnswersOverGRPC(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, http http.Handler, c *grpc.ClientConn, cancel context.CancelFunc){
		"the client cancels": func(_ *testing.T, _ http.Handler, _ *grpc.ClientConn, cancel context.CancelFunc) { cancel() },
		"the client goes":    func(_ *testing.T, _ http.Handler, c *grpc.ClientConn, _ context.CancelFunc) { c.Close() },
		"they make room": func(t *testing.T, handler http.Handler, _ *grpc.ClientConn, _ context.CancelFunc) {
			if w := asking(t, handler, "10.0.0.2:1", "/v1/endpoints?pageSize=10000"); w.Code != http.StatusOK {
				t.Errorf("a caller that has less: %d %s", w.Code, w.Body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, l := &slow{fleet: fleet{n: 10_000}, release: make(chan struct{}), address: strings.Repeat("1", 100)}, limits(100, 0, 25_000)
			close(b.release)
			s, handler := limited(t, b, l)
			connection := overGRPC(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 2 {
				leaveUnread(ctx, t, connection)
			}
			if rows, queries := l.Rows.Usage().Taken, l.Queries.Usage().Taken; rows != 20_000 || queries != 0 {
				t.Errorf("%d rows and %d queries count while nobody reads, want 20000 and 0", rows, queries)
			}
			leave(t, handler, connection, cancel)
			waitFor(t, func() bool { return l.Queries.Usage().Taken == 0 && l.Rows.Usage().Taken == 0 })
		})
	}
}

// called catches a service as it is registered, so that a test can call it without a connection.
type called struct {
	desc *grpc.ServiceDesc
	impl any
}

func (c *called) RegisterService(desc *grpc.ServiceDesc, impl any) { c.desc, c.impl = desc, impl }

// TestAnUnreadAnswerOverGRPCEndsItsConnection after two minutes, and one that is read does not.
func TestAnUnreadAnswerOverGRPCEndsItsConnection(t *testing.T) {
	for _, read := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, l := &slow{fleet: fleet{n: 5}, release: make(chan struct{})}, limits(100, 0, 100)
			close(b.release)
			s, _ := limited(t, b, l)
			var service called
			s.Register(&service)
			over := make(chan func(), 1) // what to call when the answer is sent, or its connection ends
			var ended atomic.Int32
			deliver := api.Delivered(func(_ context.Context, f func()) { over <- f }, func(context.Context) { ended.Add(1); (<-over)() })
			for _, m := range service.desc.Methods {
				if m.MethodName != "ListEndpoints" {
					continue
				}
				if _, err := m.Handler(service.impl, t.Context(), func(any) error { return nil }, deliver); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if rows := l.Rows.Usage().Taken; rows != 5 || ended.Load() > 0 {
				t.Errorf("after a minute, %d rows count, and %d connections have ended", rows, ended.Load())
			}
			if read {
				(<-over)()
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if rows := l.Rows.Usage().Taken; rows > 0 || ended.Load() > 0 == read {
				t.Errorf("after three minutes, read: %t, %d rows count, and %d connections have ended", read, rows, ended.Load())
			}
		})
	}
}

// leaveUnread asks for an answer and takes no more of it than the window of 64 kB, although its
// handler has returned.
func leaveUnread(ctx context.Context, t *testing.T, connection *grpc.ClientConn) {
	t.Helper()
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, hdsdv1.Query_ListEndpoints_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&hdsdv1.ListEndpointsRequest{PageSize: 10_000}); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits for what another goroutine is about to do.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(end) {
			t.Fatal("it never happens")
		}
		time.Sleep(time.Millisecond)
	}
}
