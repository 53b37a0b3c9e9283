package eds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/test/stall"
)

// post polls with a request in JSON.
func post(s *Server, path, body string) *http.Response {
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return recorder.Result()
}

// pollREST posts a request and returns the status, and the response of a 200.
func pollREST(t *testing.T, s *Server, path string, m *discoveryv3.DiscoveryRequest) (int, *discoveryv3.DiscoveryResponse) {
	t.Helper()
	body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m) // as Envoy does
	if err != nil {
		t.Fatal(err)
	}
	answer := post(s, path, string(body))
	return answer.StatusCode, answered(t, answer)
}

// answered reads an answer, which has to be JSON or, with 304, nothing.
func answered(t *testing.T, answer *http.Response) *discoveryv3.DiscoveryResponse {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := new(discoveryv3.DiscoveryResponse)
	switch answer.StatusCode {
	case http.StatusNotModified:
		equal(t, "304 with", string(text), "")
		return r
	case http.StatusOK:
		if err := protojson.Unmarshal(text, r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		equal(t, "length", answer.ContentLength, int64(len(text)))
	default:
		var said struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(text, &said); err != nil || said.Code == 0 || said.Message == "" {
			t.Fatalf("%d with %q, %v", answer.StatusCode, text, err)
		}
	}
	equal(t, "type", answer.Header.Get("Content-Type"), "application/json")
	return r
}

func TestPoll(t *testing.T) {
	s := NewServer(Options{Identifier: "hdsd \"1\"\n<é>", MaxNames: 20, MaxBodyBytes: 1 << 20})
	s.Update(publish.Update{
		Assignments: []publish.Assignment{assignment("a", 0, 2), assignment("b\"\n", 2, 1)},
		Clusters:    clusters("a", "1", "b\"\n", "2"),
	})
	s.setHealth(1, health.Healthy)
	for name, c := range map[string]struct {
		path, body string
		code       int
		want       string
	}{
		"as Envoy asks":     {EndpointsPath, `{"node":{"id":"dp"},"resource_names":["a"],"type_url":"` + resourcev3.EndpointType + `"}`, 200, "[a=UNHE]"},
		"in camel case":     {EndpointsPath, `{"resourceNames":["a"]}`, 200, "[a=UNHE]"},
		"everything":        {EndpointsPath, `{}`, 200, "[a=UNHE b\"\n=UN]"},
		"by the star":       {EndpointsPath, `{"resource_names":["*"]}`, 200, "[a=UNHE b\"\n=UN]"},
		"an odd name":       {EndpointsPath, `{"resource_names":["b\"\n"]}`, 200, "[b\"\n=UN]"},
		"unknown names":     {EndpointsPath, `{"resource_names":["none",""]}`, 200, "[]"},
		"clusters":          {ClustersPath, `{"type_url":"` + resourcev3.ClusterType + `"}`, 200, "[a=1 b\"\n=2]"},
		"unknown fields":    {ClustersPath, `{"resource_names":["a"],"yet_to_come":{"x":[1]}}`, 200, "[a=1]"},
		"another version":   {EndpointsPath, `{"resource_names":["a"],"version_info":"0000000000000001"}`, 200, "[a=UNHE]"},
		"another type":      {EndpointsPath, `{"type_url":"` + resourcev3.ClusterType + `"}`, 400, ""},
		"no body":           {EndpointsPath, ``, 400, ""},
		"no JSON":           {EndpointsPath, `resource_names: [a]`, 400, ""},
		"two requests":      {EndpointsPath, `{}{}`, 400, ""},
		"no request":        {EndpointsPath, `{"resource_names":{"a":1}}`, 400, ""},
		"too many names":    {EndpointsPath, `{"resource_names":["` + strings.Join(many(21), `","`) + `"]}`, 413, ""},
		"too large":         {EndpointsPath, `{"node":{"id":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, ""},
		"nothing to see at": {"/v3/discovery:listeners", `{}`, 404, ""},
	} {
		answer := post(s, c.path, c.body)
		r := answered(t, answer)
		if answer.StatusCode != c.code {
			t.Errorf("%s: status %d, want %d", name, answer.StatusCode, c.code)
		}
		if c.code != http.StatusOK {
			continue
		}
		if describeState(r) != c.want {
			t.Errorf("%s: got %s, want %s", name, describeState(r), c.want)
		}
		equal(t, "identifier", r.GetControlPlane().GetIdentifier(), s.identifier)
		equal(t, "nonce", r.GetNonce(), r.GetVersionInfo())
	}
	equal(t, "turns taken", len(s.fetcher.turns), 0)
}

func TestPollByPOSTOnly(t *testing.T) {
	s := NewServer(Options{})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, httptest.NewRequest(method, EndpointsPath, nil))
		equal(t, method, recorder.Code, http.StatusMethodNotAllowed)
		equal(t, method+": Allow", recorder.Result().Header.Get("Allow"), http.MethodPost)
	}
}

func TestTruncatedPoll(t *testing.T) {
	s := NewServer(Options{})
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, EndpointsPath, iotest.ErrReader(errors.New("cut off"))))
	answer := recorder.Result()
	answered(t, answer)
	equal(t, "status", answer.StatusCode, http.StatusBadRequest)
	equal(t, "connection", answer.Header.Get("Connection"), "close")
}

// TestPollOfTheLatestVersionGets304 polls as Envoy does: with the version that it last
// accepted.
func TestPollOfTheLatestVersionGets304(t *testing.T) {
	for path, change := range map[string]func(s *Server, text string){
		EndpointsPath: func(s *Server, text string) { s.setHealth(0, map[string]health.Status{"1": 1, "2": 2}[text]) },
		ClustersPath:  func(s *Server, text string) { s.Update(publish.Update{Clusters: clusters("a", text)}) },
	} {
		s := NewServer(Options{})
		s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1), assignment("b", 1, 1)}, Clusters: clusters("b", "0")})
		change(s, "1")
		code, first := pollREST(t, s, path, want("", "a"))
		equal(t, "first", code, 200)
		again := func(m *discoveryv3.DiscoveryRequest, want int) *discoveryv3.DiscoveryResponse {
			t.Helper()
			code, r := pollREST(t, s, path, m)
			equal(t, path, code, want)
			return r
		}
		has := want("", "a")
		has.VersionInfo = first.GetVersionInfo()
		again(has, 304)
		s.setHealth(1, health.Unhealthy)
		again(has, 304) // of b it did not ask
		change(s, "2")
		second := again(has, 200)
		if second.GetVersionInfo() == first.GetVersionInfo() {
			t.Error("changed content has the same version")
		}

		// It refuses that, and still has the first version.
		has.ErrorDetail, has.ResponseNonce = &statuspb.Status{Code: 3, Message: "no"}, second.GetNonce()
		again(has, 304)
		has.VersionInfo = "" // it has none
		again(has, 304)
		has.ResponseNonce = "" // polls may go without
		again(has, 200)
		has.ResponseNonce = second.GetNonce()
		change(s, "1")
		equal(t, "changed back", again(has, 200).GetVersionInfo(), first.GetVersionInfo())

		counted := s.published.assignments.typeURL
		if path == ClustersPath {
			counted = s.published.clusters.typeURL
		}
		equal(t, "fetches", testutil.ToFloat64(s.recorder.metrics.fetches.WithLabelValues(counted)), 8)
		equal(t, "unchanged", testutil.ToFloat64(s.recorder.metrics.unchanged.WithLabelValues(counted)), 4)
		equal(t, "refused", testutil.ToFloat64(s.recorder.metrics.nacks.WithLabelValues(counted)), 4)
		if bytes := testutil.ToFloat64(s.recorder.metrics.bytes.WithLabelValues(counted)); bytes < 4*100 {
			t.Errorf("%v bytes in 4 answers", bytes)
		}
		equal(t, "on streams", testutil.ToFloat64(s.recorder.metrics.responses.WithLabelValues(counted)), 0)
	}
}

func TestPollOfARemovedResource(t *testing.T) {
	s := NewServer(Options{})
	code, nothing := pollREST(t, s, EndpointsPath, want("", "a"))
	equal(t, "before", code, 200)
	has := want("", "a")
	has.VersionInfo = nothing.GetVersionInfo()
	code, _ = pollREST(t, s, EndpointsPath, has)
	equal(t, "known to be nothing", code, 304)
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}})
	code, r := pollREST(t, s, EndpointsPath, has)
	equal(t, "there", fmt.Sprint(code, describeState(r)), "200[a=UN]")
	s.Update(publish.Update{RemovedAssignments: []string{"a"}})
	has.VersionInfo = r.GetVersionInfo()
	code, r = pollREST(t, s, EndpointsPath, has)
	equal(t, "gone", fmt.Sprint(code, describeState(r)), "200[]")
	equal(t, "version", r.GetVersionInfo(), nothing.GetVersionInfo())
}

// TestResourcesThatJSONCannotExpressAreLeftOut and logged once for each version.
func TestResourcesThatJSONCannotExpressAreLeftOut(t *testing.T) {
	for name, metadata := range map[string]*corev3.Metadata{
		"an unknown type": {TypedFilterMetadata: map[string]*anypb.Any{"x": {TypeUrl: "type.googleapis.com/yet.to.Come", Value: []byte("\x0a\x01x")}}},
		"a broken value":  {TypedFilterMetadata: map[string]*anypb.Any{"x": {TypeUrl: resourcev3.ClusterType, Value: []byte("\x0a\xff")}}},
		"not a number":    {FilterMetadata: map[string]*structpb.Struct{"x": {Fields: map[string]*structpb.Value{"x": structpb.NewNumberValue(math.NaN())}}}},
	} {
		var log bytes.Buffer
		s := NewServer(Options{Log: zerolog.New(&log)})
		publish := func(text string) {
			bad := cluster("bad", text)
			bad.Metadata = metadata
			s.Update(publish.Update{Clusters: append(clusters("a", "1", "z", "2"), publish.Cluster{Message: bad})})
		}
		for i, text := range []string{"3", "4"} {
			publish(text)
			for range 3 {
				code, r := pollREST(t, s, ClustersPath, want(""))
				equal(t, name, fmt.Sprint(code, describeState(r)), "200[a=1 z=2]")
				f, err := s.fetcher.fetch(context.Background(), s.published.clusters, want(""))
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "version", r.GetVersionInfo(), f.version)
				equal(t, "over gRPC", len(f.frames), 3)
			}
			equal(t, "lines", strings.Count(log.String(), `"event":"resource_not_in_json"`), i+1)
		}
		code, r := pollREST(t, s, ClustersPath, want("", "bad"))
		equal(t, name+" alone", fmt.Sprint(code, describeState(r)), "200[]")
	}
}

// TestJSONIsMadeOnce: several polls share the same bytes.
func TestJSONIsMadeOnce(t *testing.T) {
	s := NewServer(Options{})
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1), assignment("b", 1, 1)}})
	texts := func() (all [2]*byte) {
		f, err := s.fetcher.fetch(context.Background(), s.published.assignments, want(""))
		if err != nil {
			t.Fatal(err)
		}
		parts := s.fetcher.text(f) // head, a, comma, b, end
		return [2]*byte{&parts[1][0], &parts[3][0]}
	}
	first := texts()
	equal(t, "again", texts(), first)
	s.setHealth(1, health.Unhealthy)
	if s.published.assignments.slots["b"].rendered != nil {
		t.Error("the text of what was published before is kept")
	}
	second := texts()
	if second[0] != first[0] || second[1] == first[1] {
		t.Errorf("a flip of b: of a another text %t, of b the same %t", second[0] != first[0], second[1] == first[1])
	}
	equal(t, "again", texts(), second)
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 2)}})
	if s.published.assignments.slots["a"].rendered != nil {
		t.Error("the text of what was published before is kept")
	}
}

// TestJSONOfAFrameThatWasReplaced flips health between the two halves of a poll.
func TestJSONOfAFrameThatWasReplaced(t *testing.T) {
	s := NewServer(Options{})
	s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}})
	s.setHealth(0, health.Healthy)
	f, err := s.fetcher.fetch(context.Background(), s.published.assignments, want(""))
	if err != nil {
		t.Fatal(err)
	}
	s.setHealth(0, health.Unhealthy)
	_, late := pollREST(t, s, EndpointsPath, want(""))
	r := new(discoveryv3.DiscoveryResponse)
	if err := protojson.Unmarshal(bytes.Join(s.fetcher.text(f), nil), r); err != nil {
		t.Fatal(err)
	}
	equal(t, "before", describeState(r), "[a=HE]")
	equal(t, "its version", r.GetVersionInfo(), f.version)
	equal(t, "after", describeState(late), "[a=UN]")
	_, late = pollREST(t, s, EndpointsPath, want(""))
	equal(t, "and later", describeState(late), "[a=UN]")
}

func TestPollOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{})
		s.Update(publish.Update{Clusters: clusters("a", "1")})
		listener := bufconn.Listen(1 << 20)
		server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}
		defer func() {
			transport.CloseIdleConnections()
			server.Close()
			<-served
		}()
		gets := func(code int, want string) {
			t.Helper()
			answer, err := (&http.Client{Transport: transport}).Post("http://hdsd"+ClustersPath, "application/json", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			equal(t, "status", answer.StatusCode, code)
			equal(t, "answer", describeState(answered(t, answer)), want)
		}
		var working []func()
		for range atOnce {
			done, err := s.fetcher.turn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			working = append(working, done)
		}
		began := time.Now()
		time.AfterFunc(time.Minute, working[0])
		gets(http.StatusOK, "[a=1]")
		equal(t, "waited", time.Since(began), time.Minute)
		gets(http.StatusOK, "[a=1]")
		s.Close()
		gets(http.StatusServiceUnavailable, "[]")
	})
}

func TestSlowPollsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{})
		s.Update(publish.Update{Clusters: clusters("a", "1")})
		borne, answer := stall.SlowBody(t, s.Handler(), ClustersPath)
		if borne > 11*time.Second || !strings.HasPrefix(answer, "HTTP/1.1 400") {
			t.Errorf("a body a byte a second: borne for %v, told %q", borne, answer)
		}
		if borne := stall.UnreadAnswer(t, s.Handler(), ClustersPath, "{}"); borne > 2*time.Minute {
			t.Errorf("an answer that is not read: borne for %v", borne)
		}
		equal(t, "turns taken", len(s.fetcher.turns), 0)
	})
}

// TestLongTextsAreRefusedByREST: before they are decoded, whatever else is in a request.
func TestLongTextsAreRefusedByREST(t *testing.T) {
	s := NewServer(Options{})
	for bytes, want := range map[int]int{longestName: 200, 9 << 20: 413} {
		long := strings.Repeat("x", bytes)
		answer := post(s, EndpointsPath, `{"resourceNames":["a","`+long+`","b"]}`)
		equal(t, "status", answer.StatusCode, want)
		answer.Body.Close()
	}
	for name, body := range map[string]string{
		"a long one":         `{"resourceNames":["` + strings.Repeat("x", textBytes) + `"]}`,
		"after many":         `{"resourceNames":["a"` + strings.Repeat(`,"b"`, textBytes/8) + `,"` + strings.Repeat("x", 2*textBytes) + `"]}`,
		"many and a long id": `{"resourceNames":[` + strings.Repeat(`"b",`, textBytes/8) + `"b"],"node":{"id":"` + strings.Repeat("x", textBytes) + `"}}`,
	} {
		if err := s.limiter.countText([]byte(body)); err == nil || !strings.Contains(err.Error(), "up to") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.limiter.countText([]byte(`{"resourceNames":[` + strings.Repeat(`"b",`, textBytes/8) + `"b"]}`)); err != nil && !strings.Contains(err.Error(), "fields") {
		t.Error(err)
	}
}
