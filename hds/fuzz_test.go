package hds_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hdsd/envoy/specifier"
	"hdsd/hds"
	"hdsd/health"
)

// agree fails unless both ways of reading a report, where both read it, come
// to the same.
func agree(t *testing.T, message []byte, spec *specifier.Specifier) {
	t.Helper()
	fast, walked := hds.Walk(message, spec)
	if !walked {
		return
	}
	// A flat list beside the nested one is skipped unread; it may be anything.
	if slow, follows, err := hds.Decode(message, spec); err == nil && (!follows || slow != fast) {
		t.Errorf("%x: walked %s, decoded %s (in order: %v)", message, fast, slow, follows)
	}
}

func FuzzReport(f *testing.F) {
	spec := assignment(checked{9, db1}, checked{1, web1}, checked{2, web2})
	before := assignment(checked{9, db1}, checked{4, "web/a/10.0.0.4:80"})
	all := report(said{db1, up, 0}, said{web1, down, 503}, said{web2, timeout, 0})
	flat := proto.CloneOf(all)
	flat.GetEndpointHealthResponse().ClusterEndpointsHealth = nil
	for _, m := range []*healthv3.HealthCheckRequestOrEndpointHealthResponse{
		all, flat, report(), report(said{web1, 99, 1}), report(said{db1, up, 0}, said{"web/a/10.0.0.4:80", down, 0}),
		hello(&corev3.Node{Id: "a"}), reportMessage(&healthv3.EndpointHealthResponse{}),
	} {
		f.Add(encode(f, m), encode(f, all))
		f.Add(encode(f, all), encode(f, m))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		agree(t, first, spec)
		agree(t, second, assignment())
		var r hds.Reader
		r.Assign(before)
		r.Assign(spec)
		for _, message := range [][]byte{first, second, first} {
			votes, _, _, err := r.Read(message)
			if err != nil {
				return
			}
			for _, v := range votes {
				if !slices.Contains(spec.Order, v.Endpoint) || !v.Status.Valid() {
					t.Errorf("a vote of %d=%s", v.Endpoint, v.Status)
				}
			}
		}
	})
}

func FuzzFirstMessage(f *testing.F) {
	f.Add(encode(f, hello(&corev3.Node{Id: "a", UserAgentName: "envoy", Locality: &corev3.Locality{Zone: "z"}})))
	f.Add(encode(f, hello(nil)))
	f.Add(encode(f, report(said{web1, up, 200})))
	f.Fuzz(func(t *testing.T, message []byte) {
		if c, err := hds.Introduce(message); err == nil && c.ID == "" {
			t.Error("a checker without an id was let in")
		}
	})
}

// TestBothReadersComeToTheSame holds the fast reader against the general one
// over streams of specifiers and reports, most of them nearly as expected.
func TestBothReadersComeToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fast, general := &hds.Reader{}, &hds.Reader{Generally: true}
		var history [][]checked
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if len(history) == 0 || rapid.IntRange(0, 3).Draw(t, "assign") == 0 {
				endpoints := drawEndpoints(t)
				history = append(history, endpoints)
				fast.Assign(assignment(endpoints...))
				general.Assign(assignment(endpoints...))
			}
			back := min(len(history)-1, rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "back"))
			message := drawReport(t, history[len(history)-1-back])
			b, err := proto.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			if f, g := readText(fast, b), readText(general, b); f != g {
				t.Fatalf("%v:\n   fast %s\ngeneral %s", message, f, g)
			}
		}
	})
}

// TestASmallReportAfterLargeOnes is not compared with those: of two clusters, the first stands
// where it stood and says something else, and the second is shorter.
func TestASmallReportAfterLargeOnes(t *testing.T) {
	var endpoints []checked
	for i := range 105 {
		cluster := "a"
		if i >= 5 {
			cluster = "b"
		}
		endpoints = append(endpoints, checked{health.EndpointID(i), fmt.Sprintf("%s/z/10.0.0.%d:80", cluster, 100+i)})
	}
	says := func(status corev3.HealthStatus, code int) []byte {
		var entries []said
		for i, e := range endpoints {
			if entries = append(entries, said{e.name, status, 0}); i >= 5 {
				entries[i] = said{e.name, up, code}
			}
		}
		m := report(entries...)
		m.GetEndpointHealthResponse().EndpointsHealth = nil
		return encode(t, m)
	}
	large, small := says(up, 200), says(down, 0)
	if len(large) <= hds.KeptBytes || len(small) > hds.KeptBytes {
		t.Fatalf("the reports have %d and %d bytes", len(large), len(small))
	}
	fast, general := &hds.Reader{}, &hds.Reader{Generally: true}
	fast.Assign(assignment(endpoints...))
	general.Assign(assignment(endpoints...))
	for i, b := range [][]byte{large, large, small, small, large} {
		if f, g := readText(fast, b), readText(general, b); f != g {
			t.Errorf("report %d:\n   fast %s\ngeneral %s", i, f, g)
		}
	}
}

func readText(r *hds.Reader, b []byte) string {
	votes, strange, synced, err := r.Read(b)
	return fmt.Sprintf("votes%s, %d strange, synced %v, error %v", votesText(votes), strange, synced, err)
}

func drawEndpoints(t *rapid.T) []checked {
	var all []checked
	for id, name := range []string{
		"db/a/10.0.0.1:80", "db/b/10.0.0.1:80", "db/b//run/db", "web/a/10.0.0.1:80", "web/a/10.0.0.2:80", "web/b/[::1]:80", "web/c/10.0.0.3:80",
	} {
		if rapid.Bool().Draw(t, name) {
			all = append(all, checked{health.EndpointID(id), name})
		}
	}
	return all
}

func drawReport(t *rapid.T, endpoints []checked) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	var entries []said
	for _, e := range endpoints {
		entries = append(entries, said{
			e.name,
			corev3.HealthStatus(rapid.SampledFrom([]int{1, 1, 1, 2, 4, 0, 9}).Draw(t, "status")),
			rapid.SampledFrom([]int{0, 200, 503, 7}).Draw(t, "code"),
		})
	}
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0:
		entries = append(entries, said{"other/a/10.0.0.1:80", up, 0})
	case 1:
		entries = entries[:len(entries)/2]
	case 2:
		slices.Reverse(entries)
	case 3:
		m := report(entries...)
		if r := m.GetEndpointHealthResponse(); r != nil {
			r.ClusterEndpointsHealth = nil
		}
		return m
	}
	return report(entries...)
}

// FuzzFetch gives both versions of the API anything, by REST and by gRPC, in
// the place of a first fetch and of a report after a good one.
func FuzzFetch(f *testing.F) {
	f.Add([]byte(helloJSON), encode(f, hello(&corev3.Node{Id: "b"})))
	f.Add([]byte(reportJSON), encode(f, report(said{web1, down, 503})))
	f.Add([]byte(`{"endpointHealthResponse":{"endpointsHealth":[{}]}}`), encode(f, reportV2(saidV2{"10.0.0.1", 2})))
	f.Add([]byte(`{}`), encode(f, helloV2(nodeV2("a"))))
	f.Fuzz(func(t *testing.T, body, message []byte) {
		sink := &recorder{}
		server := hds.NewServer(hds.Options{AssignTimeout: time.Nanosecond}, sink)
		defer server.Close()
		sink.onConnected = func(c health.Checker) { server.Assign(c.ID, assignment(checked{1, web1})) }
		for _, path := range []string{hds.FetchPath, hds.FetchPathV2} {
			if code, said := postTo(server, path, helloJSON); code != http.StatusOK {
				t.Fatalf("%s: a good fetch got %d %s", path, code, said)
			}
			if code, said := postTo(server, path, string(body)); !json.Valid(said) || code >= 500 {
				t.Errorf("%s: got %d %s", path, code, said)
			}
		}
		m := &healthv3.HealthCheckRequestOrEndpointHealthResponse{}
		if proto.Unmarshal(message, m) == nil {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(hds.NodeHeader, "a"))
			if spec, err := server.FetchHealthCheck(ctx, m); (spec == nil) == (err == nil) {
				t.Errorf("got %v, %v", spec, err)
			}
		}
		server.Close()
		balanced(t, sink.calls)
	})
}

func postTo(server *hds.Server, path, body string) (int, []byte) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set(hds.NodeHeader, "a")
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// balanced fails unless each checker was connected before anything else, and
// all are disconnected in the end.
func balanced(t *testing.T, calls []string) {
	t.Helper()
	connected := map[string]bool{}
	for _, call := range calls {
		what, rest, _ := strings.Cut(call, " ")
		switch {
		case what == "connected":
			connected[rest] = true
		case what == "ended":
			if !connected[rest] {
				t.Errorf("%q without being connected", call)
			}
		case what == "disconnected":
			if !connected[rest] {
				t.Errorf("%q without being connected", call)
			}
			delete(connected, rest)
		case !strings.HasPrefix(rest, "a") || !connected["a"]:
			t.Errorf("%q, connected are %v", call, connected)
		}
	}
	if len(connected) > 0 {
		t.Errorf("connected in the end: %v", connected)
	}
}
