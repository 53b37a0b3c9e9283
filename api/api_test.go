package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/reason"
	"hdsd/test/rest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 345_000_000, time.UTC)

// fleet is a Backend of n endpoints of the cluster web, one of them down.
type fleet struct {
	n        int
	queries  []api.TransitionQuery
	asked    []api.EndpointQuery
	periods  []api.AvailabilityQuery
	watches  []api.WatchQuery
	end      error // of what is watched
	closed   bool
	gaps     []api.Gap
	failing  string
	status   api.Status
	overview api.Overview
	paths    []api.Path
	replicas []api.Replica
	epoch    int64

	clusters []api.ClusterQuery
	clients  []string // of which cluster they were asked for
}

func (f *fleet) Paths(context.Context) ([]api.Path, error) { return f.paths, nil }

func (f *fleet) Overview(_ context.Context, limit int) (api.Overview, error) {
	return api.Overview{Clusters: f.overview.Clusters[:min(limit, len(f.overview.Clusters))], Further: f.overview.Further}, nil
}

func (f *fleet) Status(context.Context) (api.Status, error) { return f.status, nil }

func (f *fleet) endpoint(i int) api.EndpointHealth {
	e := api.EndpointHealth{
		HeldSince: noon,
		Endpoint:  health.Endpoint{Cluster: "web", Locality: health.Locality{Zone: "a"}, Address: fmt.Sprintf("10.0.0.%03d:80", i)},
		Verdict:   health.Verdict{Status: health.Healthy, Since: noon, Reason: "3 of 3 checkers say HEALTHY"},
	}
	if i == 1 {
		e.Verdict = health.Verdict{Status: health.Unhealthy, Since: noon, Reason: "2 of 3 checkers say UNHEALTHY", Observations: []health.Observation{
			{Checker: "checker-1", Status: health.Unhealthy, HTTPStatusCode: 503, Time: noon},
			{Checker: "checker-2", Status: health.Timeout, Time: noon, Disbelieved: "warming up"},
		}}
	}
	return e
}

func (f *fleet) Endpoints(_ context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	if q.Cluster != "" && q.Cluster != "web" {
		return nil, false, fmt.Errorf("cluster %q: %w", q.Cluster, api.ErrUnknownCluster)
	}
	f.asked = append(f.asked, q)
	var found []api.EndpointHealth
	for i := range f.n {
		e := f.endpoint(i)
		if q.After != nil && e.Endpoint.Compare(*q.After) <= 0 || q.Health != nil && e.Verdict.Status != *q.Health {
			continue
		}
		if len(found) == q.Limit {
			return found, true, nil
		}
		found = append(found, e)
	}
	return found, false, nil
}

func (f *fleet) Transitions(_ context.Context, q api.TransitionQuery) ([]health.Transition, string, error) {
	f.queries = append(f.queries, q)
	if q.Token == "bad" {
		return nil, "", api.ErrBadToken
	}
	return []health.Transition{{Time: noon, Endpoint: f.endpoint(1).Endpoint, From: health.Healthy, To: health.Unhealthy, Reason: "2 of 3 checkers say UNHEALTHY"}}, "", nil
}

func (f *fleet) Gaps(context.Context, api.TransitionQuery, string) ([]api.Gap, error) {
	return f.gaps, nil
}

// HistoryBegan is long before the other times of the tests.
func (f *fleet) HistoryBegan() (time.Time, error) { return noon.AddDate(-1, 0, 0), nil }

func (f *fleet) HistoryFailing() string { return f.failing }

func (f *fleet) Clusters(_ context.Context, q api.ClusterQuery) ([]api.Cluster, bool, error) {
	f.clusters = append(f.clusters, q)
	if strings.HasPrefix(q.Cluster, "gone") {
		return nil, false, nil
	}
	after, limit := q.After, q.Limit
	names := []string{"api", "db", "web"}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	var found []api.Cluster
	for _, name := range names[:min(limit, len(names))] {
		found = append(found, api.Cluster{Name: name, Source: "local", Checked: true, Endpoints: 4, HealthCounts: api.HealthCounts{Healthy: 3, Unhealthy: 1},
			Quarantined: []api.Quarantined{{Address: "db.internal:5432", Reason: "a hostname"}}})
	}
	return found, len(names) > limit, nil
}

func (f *fleet) Checkers(context.Context) ([]api.Checker, error) {
	var all []api.Checker
	for i := range 3 {
		all = append(all, api.Checker{Checker: health.Checker{ID: fmt.Sprintf("checker-%d", i), Version: "envoy/1.40.0",
			Abilities: health.Abilities{health.TCP: {}, health.HTTP: {}, "envoy.transport_sockets.tls": {}}}, Connected: true, Trusted: true, Specifier: "SYNCED"})
	}
	return all, nil
}

// ask asks a handler, and checks the answer against the OpenAPI document.
func ask(t *testing.T, handler http.Handler, path string) (body map[string]any, text string) {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	if err := rest.Load(t).Check(&rest.Answer{Method: http.MethodGet, Target: path, Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}); err != nil {
		t.Errorf("GET %s differs from the OpenAPI document: %v", path, err)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		t.Fatalf("GET %s: %v in %q", path, err, answer.Body)
	}
	return body, answer.Body.String()
}

func get(t *testing.T, f *fleet, path string) (int, map[string]any, string) {
	t.Helper()
	handler, err := api.NewService(f).Handler()
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	if err := rest.Load(t).Check(&rest.Answer{Method: http.MethodGet, Target: path, Status: answer.Code, Header: answer.Header(), Body: answer.Body.Bytes()}); err != nil {
		t.Errorf("GET %s differs from the OpenAPI document: %v", path, err)
	}
	var body map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		t.Fatalf("GET %s: %v in %q", path, err, answer.Body)
	}
	return answer.Code, body, answer.Body.String()
}

func TestEndpointsHaveThePromisedShape(t *testing.T) {
	code, body, _ := get(t, &fleet{n: 2}, "/v1/endpoints?cluster=web&address=&health=UNHEALTHY")
	if code != http.StatusOK {
		t.Fatalf("status %d: %v", code, body)
	}
	want := `{"endpoints":[{"address":"10.0.0.001:80","cluster":"web","health":"UNHEALTHY","held":true,"heldSince":"2026-01-02T12:00:00.345Z","locality":{"region":"","subZone":"","zone":"a"},` +
		`"observations":[{"checker":"checker-1","disbelieved":"","httpStatusCode":503,"status":"UNHEALTHY","time":"2026-01-02T12:00:00.345Z"},` +
		`{"checker":"checker-2","disbelieved":"warming up","status":"TIMEOUT","time":"2026-01-02T12:00:00.345Z"}],` +
		`"reason":"2 of 3 checkers say UNHEALTHY","since":"2026-01-02T12:00:00.345Z","zones":[]}],"nextPageToken":""}`
	got, _ := json.Marshal(body)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAnswersAreCompact: the bytes of an answer do not hang on the build.
func TestAnswersAreCompact(t *testing.T) {
	for _, path := range []string{"/v1/endpoints", "/v1/transitions", "/v1/clusters", "/v1/checkers"} {
		_, _, body := get(t, &fleet{n: 2}, path)
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(body)); err != nil || compact.String() != body {
			t.Errorf("GET %s: %v in %s", path, err, body)
		}
	}
}

func TestPagesCoverAllEndpoints(t *testing.T) {
	for _, path := range []string{"/v1/endpoints?pageSize=7", "/v1/clusters?pageSize=2", "/v1/checkers?pageSize=1", "/v1/clients?pageSize=2", "/v1/availability?pageSize=5"} {
		seen, token := 0, ""
		for pages := 0; ; pages++ {
			code, body, text := get(t, &fleet{n: 23}, path+"&pageToken="+token)
			if code != http.StatusOK || pages > 10 {
				t.Fatalf("%s, page %d: %d %s", path, pages, code, text)
			}
			for name, list := range body {
				if items, ok := list.([]any); ok && name != "nextPageToken" {
					seen += len(items)
				}
			}
			if token = body["nextPageToken"].(string); token == "" {
				break
			}
		}
		if want := map[bool]int{true: 23, false: 3}[strings.Contains(path, "endpoints") || strings.Contains(path, "availability")]; seen != want {
			t.Errorf("%s: %d items over all pages, want %d", path, seen, want)
		}
	}
}

func TestTransitionsPassTheirFilters(t *testing.T) {
	f := &fleet{n: 2}
	code, _, text := get(t, f, "/v1/transitions?cluster=web&startTime=2026-01-02T00:00:00Z&newestFirst=true&pageSize=5")
	if code != http.StatusOK || !strings.Contains(text, `"from"`) {
		t.Fatalf("%d %s", code, text)
	}
	want := api.TransitionQuery{Cluster: "web", Start: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), NewestFirst: true, Limit: 5}
	if len(f.queries) != 1 || f.queries[0] != want {
		t.Errorf("asked %+v, want %+v", f.queries, want)
	}
}

func TestBadQuestionsAreRefused(t *testing.T) {
	_, firstPage, _ := get(t, &fleet{n: 9}, "/v1/endpoints?pageSize=2")
	foreign := firstPage["nextPageToken"].(string)
	cases := map[string]int{
		"/v1/endpoints?cluster=nowhere":                  http.StatusNotFound,
		"/v1/endpoints?pageSize=-1":                      http.StatusBadRequest,
		"/v1/endpoints?pageSize=10001":                   http.StatusBadRequest,
		"/v1/endpoints?pageSize=many":                    http.StatusBadRequest,
		"/v1/endpoints?health=SICK":                      http.StatusBadRequest,
		"/v1/endpoints?health=77":                        http.StatusBadRequest,
		"/v1/endpoints?pageToken=!!":                     http.StatusBadRequest,
		"/v1/endpoints?cluster=web&pageToken=" + foreign: http.StatusBadRequest,
		"/v1/endpoints?clutser=web":                      http.StatusBadRequest,
		"/v1/endpoints?cluster=web&cluster=api":          http.StatusBadRequest,
		"/v1/endpoints?cluster=%zz":                      http.StatusBadRequest,
		"/v1/clusters?pageToken=" + foreign:              http.StatusBadRequest,
		"/v1/checkers?pageToken=x":                       http.StatusBadRequest,
		"/v1/transitions?startTime=yesterday":            http.StatusBadRequest,
		"/v1/transitions?pageToken=bad":                  http.StatusBadRequest,
		"/v1/endpoints?asOf=noon":                        http.StatusBadRequest,
		"/v1/availability?cluster=nowhere":               http.StatusNotFound,
		"/v1/availability?startTime=noon":                http.StatusBadRequest,
		"/v1/availability?endTime=1h":                    http.StatusBadRequest,
		"/v1/availability?pageToken=" + foreign:          http.StatusBadRequest,
		"/v1/availability?health=HEALTHY":                http.StatusBadRequest,
		"/v1/clients?pageToken=" + foreign:               http.StatusBadRequest,
		"/v1/clients?kind=checker":                       http.StatusBadRequest,
		"/v1/nothing":                                    http.StatusNotFound,
	}
	for path, want := range cases {
		code, body, text := get(t, &fleet{n: 9}, path)
		if code != want {
			t.Errorf("GET %s: status %d, want %d: %s", path, code, want, text)
		}
		if message, ok := body["message"].(string); !ok || message == "" || body["code"] == nil || len(body) != 3 {
			t.Errorf("GET %s: body %s, want code and message", path, text)
		}
	}
}

// TestTransitionsSayWhatIsMissing: gaps stand beside the transitions of a page, and why
// the disk takes nothing at present.
func TestTransitionsSayWhatIsMissing(t *testing.T) {
	f := &fleet{n: 3}
	if _, body, text := get(t, f, "/v1/transitions"); body["failing"] != nil || body["missing"] != nil {
		t.Error("when all is well:", text)
	}
	f.failing, f.gaps = "full", []api.Gap{{Start: noon, End: noon.Add(time.Minute), Transitions: 7}}
	_, body, text := get(t, f, "/v1/transitions")
	if want := `"missing":{"gaps":[{"start":"2026-01-02T12:00:00.345Z","end":"2026-01-02T12:01:00.345Z","transitions":7}]}`; body["failing"] != "full" || !strings.Contains(text, want) {
		t.Errorf("%s, want %s", text, want)
	}
}

// TestRESTSaysWhatGRPCSays: over REST, long lists are written without messages.
func TestRESTSaysWhatGRPCSays(t *testing.T) {
	f := &fleet{n: 3, failing: "full", gaps: []api.Gap{{Start: noon, End: noon.Add(time.Minute), Transitions: 7}}}
	service := api.NewService(f)
	endpoints, err := service.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	transitions, err := service.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	for path, m := range map[string]proto.Message{"/v1/endpoints?pageSize=2": endpoints, "/v1/transitions?pageSize=2": transitions} {
		text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil {
			t.Fatal(err)
		}
		if _, _, got := get(t, f, path); strings.TrimSpace(got) != want.String() {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want.String())
		}
	}
}

func TestGRPCCodes(t *testing.T) {
	service := api.NewService(&fleet{n: 3})
	_, err := service.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{Cluster: "nowhere"})
	if status.Code(err) != codes.NotFound || reason.Of(err) != reason.UnknownCluster {
		t.Errorf("unknown cluster: %v", err)
	}
	_, err = service.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{PageToken: "bad"})
	if status.Code(err) != codes.InvalidArgument || reason.Of(err) != reason.TokenInvalid {
		t.Errorf("bad token: %v", err)
	}
}

func FuzzREST(f *testing.F) {
	for _, seed := range []string{"/v1/endpoints?cluster=web", "/v1/transitions?startTime=2026-01-02T00:00:00Z", "/v1/checkers?pageToken=AAAA", "/v1/clusters?pageSize=%00", "/v1/availability?endTime=2026-01-02T00:00:00Z", "/v1/clients?pageToken=e30", "/v1/endpoints?asOf=0001-01-01T00:00:00Z"} {
		f.Add(seed)
	}
	handler, err := api.NewService(&fleet{n: 3}).Handler()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target string) {
		request, err := http.NewRequest(http.MethodGet, target, nil)
		if err != nil || !strings.HasPrefix(request.URL.Path, "/v1/") || request.URL.Path == "/v1/watch" {
			t.Skip()
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code >= 500 && answer.Code != http.StatusNotImplemented || !json.Valid(answer.Body.Bytes()) && answer.Body.Len() > 0 {
			t.Errorf("GET %q: %d %s", target, answer.Code, answer.Body)
		}
	})
}

func TestOnlyGetAsks(t *testing.T) {
	handler, err := api.NewService(&fleet{n: 1}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/v1/endpoints", strings.NewReader("cluster=web"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if answer.Code != http.StatusMethodNotAllowed && answer.Code != http.StatusNotFound && answer.Code != http.StatusNotImplemented {
		t.Errorf("a POST is answered %d: %s", answer.Code, answer.Body)
	}
}

// losing is a fleet in which two checkers are lost, one of them for good.
type losing struct{ fleet }

func (f *losing) Checkers(ctx context.Context) ([]api.Checker, error) {
	all, err := f.fleet.Checkers(ctx)
	all[0].Lost, all[1].Lost = &api.Lost{Since: noon, Gone: true}, &api.Lost{Since: noon}
	return all, err
}

// TestLostCheckersAreListedOnRequest, once their seats are given up.
func TestLostCheckersAreListedOnRequest(t *testing.T) {
	service := api.NewService(&losing{})
	for lost, want := range map[bool]string{false: "checker-1 checker-2 ", true: "checker-0 checker-1 checker-2 "} {
		found := ""
		for token := ""; ; {
			answer, err := service.ListCheckers(t.Context(), &hdsdv1.ListCheckersRequest{Lost: lost, PageSize: 1, PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range answer.GetCheckers() {
				found += k.GetId() + " "
			}
			if token = answer.GetNextPageToken(); token == "" {
				break
			}
		}
		if found != want {
			t.Errorf("lost %t: found %q, want %q", lost, found, want)
		}
	}
}
