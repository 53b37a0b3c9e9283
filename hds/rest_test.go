package hds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/hds"
	"hdsd/test/stall"
)

// rest is a client of an HTTP server that serves f.server.
type rest struct {
	f      *fixture
	client *http.Client
	ln     *bufconn.Listener
}

func (f *fixture) rest() *rest {
	ln := bufconn.Listen(1 << 20)
	server := &http.Server{Handler: f.server.Handler(), ReadHeaderTimeout: time.Minute}
	go func() {
		_ = server.Serve(&from{ln, &net.TCPAddr{IP: net.ParseIP("10.1.0.1"), Port: 40000}, func(c net.Conn) net.Conn { return c }})
	}()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.DialContext(ctx) },
		// A deadline that bufconn is told to forget may come in force all the
		// same, and end what is asked next on the connection.
		DisableKeepAlives: true,
	}
	f.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		time.Sleep(time.Second) // it lingers after a body that was not read to its end
	})
	return &rest{f, &http.Client{Transport: transport}, ln}
}

// do gives the status and the body of an answer.
func (r *rest) do(method, path, node, body string) (int, string) {
	r.f.Helper()
	request, err := http.NewRequestWithContext(r.f.ctx, method, "http://hdsd"+path, strings.NewReader(body))
	if err != nil {
		r.f.Fatal(err)
	}
	if node != "" {
		request.Header.Set("X-Hdsd-Node-Id", node)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		r.f.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Type"); got != "application/json" {
		r.f.Errorf("%s %s: Content-Type %q", method, path, got)
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		r.f.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

// gets posts and compares the specifier in the answer.
func (r *rest) gets(node, body, want string) {
	r.f.Helper()
	code, said := r.do(http.MethodPost, "/v3/discovery:health_check", node, body)
	spec := &healthv3.HealthCheckSpecifier{}
	if err := protojson.Unmarshal([]byte(said), spec); err != nil || code != http.StatusOK {
		r.f.Fatalf("%s: %d %s, %v", body, code, said, err)
	}
	if got := specifierText(spec); got != want {
		r.f.Errorf("%s: got %q, want %q", body, got, want)
	}
}

const (
	helloJSON  = `{"health_check_request":{"node":{"id":"a","locality":{"zone":"z1"}},"capability":{"healthCheckProtocols":["HTTP"]},"of_tomorrow":1}}`
	reportJSON = `{"endpointHealthResponse":{"clusterEndpointsHealth":[{"clusterName":"web","localityEndpointsHealth":[{"locality":{"zone":"a"},
		"endpointsHealth":[{"endpoint":{"address":{"socketAddress":{"address":"10.0.0.1","portValue":80}}},"healthStatus":"UNHEALTHY","healthMetadata":{"http_status_code":503}}]}]}]}}`
)

func TestFetchByREST(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		r := f.rest()
		r.gets("", helloJSON, webOne)
		same(t, "calls", f.sink.take(), "connected a")
		r.gets("a", reportJSON, webOne)
		same(t, "calls", f.sink.take(), "reported a 1=UNHEALTHY/503")
		f.is(hds.Synced, 0)
		r.gets("a", `{}`, webOne)
		same(t, "calls of a heartbeat", f.sink.take(), "reported a")
		time.Sleep(3 * time.Second)
		same(t, "calls", f.sink.take(), "disconnected a")
	})
}

func TestRESTSaysWhatIsWrong(t *testing.T) {
	bubble(t, hds.Options{MaxMessageBytes: 4096}, func(f *fixture) {
		f.assigning()
		r := f.rest()
		r.gets("", helloJSON, "")
		f.connect("b", "10.1.0.9", "z1")
		f.sink.take()
		const path = "/v3/discovery:health_check"
		for what, test := range map[string]struct {
			method, path, node, body string
			status                   int
			code                     codes.Code
			text                     string
		}{
			"another path":  {"POST", "/v3/discovery:endpoints", "", helloJSON, 404, codes.NotFound, "use /v2/discovery:health_check or /v3/discovery:health_check"},
			"another verb":  {"PUT", path, "", helloJSON, 405, codes.Unimplemented, "use POST"},
			"no JSON":       {"POST", path, "", `{"health_check_request":`, 400, codes.InvalidArgument, "no envoy.service.health.v3.HealthCheckRequestOrEndpointHealthResponse in proto3 JSON"},
			"a wrong type":  {"POST", path, "", `{"health_check_request":7}`, 400, codes.InvalidArgument, "in proto3 JSON"},
			"nothing":       {"POST", path, "a", ``, 400, codes.InvalidArgument, "in proto3 JSON"},
			"no node":       {"POST", path, "", `{"health_check_request":{}}`, 400, codes.InvalidArgument, "no node"},
			"a long one":    {"POST", path, "", strings.Repeat(" ", 4096) + `{}`, 413, codes.ResourceExhausted, "up to 4096 bytes"},
			"nobody's":      {"POST", path, "", reportJSON, 401, codes.Unauthenticated, "x-hdsd-node-id"},
			"an unknown's":  {"POST", path, "c", reportJSON, 400, codes.FailedPrecondition, "has not fetched"},
			"a taken id":    {"POST", path, "", strings.ReplaceAll(helloJSON, `"a"`, `"b"`), 409, codes.AlreadyExists, "is taken"},
			"of v2, but v3": {"POST", "/v2/discovery:health_check", "a", `{}`, 400, codes.FailedPrecondition, "other version"},
		} {
			status, body := r.do(test.method, test.path, test.node, test.body)
			var said struct {
				Code    codes.Code
				Message string
				Details json.RawMessage
			}
			decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&said); err != nil || status != test.status || said.Code != test.code || !strings.Contains(said.Message, test.text) {
				t.Errorf("%s: got %d %s, want %d, code %d and %q", what, status, body, test.status, test.code, test.text)
			}
		}
		same(t, "calls", f.sink.take())
		f.server.Close()
		if status, body := r.do("POST", path, "", helloJSON); status != 503 {
			t.Errorf("closed: %d %s", status, body)
		}
	})
}

func TestBodyThatNeverEndsIsGivenUp(t *testing.T) {
	tests := map[string]string{
		"a fetch":      "POST " + hds.FetchPath,
		"another path": "POST /v3/discovery:routes",
	}
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, hds.Options{FirstMessageTimeout: 10 * time.Second}, func(f *fixture) {
				conn, err := f.rest().ln.DialContext(f.ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				start := time.Now()
				if _, err := io.WriteString(conn, request+" HTTP/1.1\r\nHost: hdsd\r\nContent-Length: 10\r\n\r\n{"); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
					t.Errorf("got %q, %v", answer, err)
				}
				if waited := time.Since(start); waited < 10*time.Second || waited > 11*time.Second {
					t.Errorf("it took %s", waited)
				}
			})
		})
	}
}

func TestSlowFetchesAreGivenUp(t *testing.T) {
	bubble(t, hds.Options{FirstMessageTimeout: 7 * time.Second, WriteTimeout: 5 * time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		borne, answer := stall.SlowBody(f.T, f.server.Handler(), hds.FetchPath)
		if borne < 7*time.Second || borne > 8*time.Second || !strings.HasPrefix(answer, "HTTP/1.1 400") {
			t.Errorf("a body a byte a second: borne for %v, told %q", borne, answer)
		}
		if borne := stall.UnreadAnswer(f.T, f.server.Handler(), hds.FetchPath, helloJSON); borne < 5*time.Second || borne > 6*time.Second {
			t.Errorf("an answer that is not read: borne for %v", borne)
		}
		same(t, "calls", f.sink.take(), "connected a", "disconnected a")
	})
}
