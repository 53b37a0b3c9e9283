package coordinator_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// paths are all that the HTTP server serves, and one that it does not.
var paths = []string{
	"/healthz", "/readyz", "/metrics", "/nothing", "/v1/endpoints", "/v1/watch", "/v1/checkers", "/v1/openapi.json", "/v1/freeze", "/v1/overrides",
	"/v1/trust", "/v1/clock", "/v3/discovery:client_status", "/v3/discovery:endpoints", "/v3/discovery:clusters", "/v3/discovery:health_check", "/v2/discovery:health_check",
}

// TestWebPagesAreRefused covers the requests that browsers send for pages of other sites, for every path and
// method.
func TestWebPagesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), strings.Replace(quick, `http: {address: "127.0.0.1:0"}`, `http: {address: "127.0.0.1:0", allowed_hosts: [hdsd.example]}`, 1), static("web", "127.0.0.1:1"))
	s.ready()
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			for _, c := range []struct {
				headers string
				want    int
			}{
				{"Host: evil.example:18080", 421},
				{"Host: evil.example:18080, Origin: http://evil.example:18080, Content-Type: application/json", 421},
				{"Origin: http://evil.example", 403},
				{"Origin: null, Content-Type: text/plain", 403},
				{"Content-Type: text/plain", 415},
			} {
				if c.want == 415 && (method == "GET" || method == "OPTIONS") {
					continue
				}
				answer := s.send(method, path, `{"health_check_request": {"node": {"id": "intruder"}}}`, c.headers)
				if answer.StatusCode != c.want {
					t.Errorf("%s %s with %s: %d, want %d", method, path, c.headers, answer.StatusCode, c.want)
				}
				holdPolicy(t, path, answer.Header)
			}
		}
	}
	if _, text := s.get("/v1/checkers"); strings.Contains(text, "intruder") {
		t.Errorf("a page's checker has joined: %s", text)
	}
	s.eventually("refusals to be counted", func() bool { return s.scrape().samples[`hdsd_http_requests_total{code="421",handler="refused"}`] > 0 })
	answer := s.send("GET", "/metrics", "", "Host: hdsd_rest")
	holdPolicy(t, "/metrics", answer.Header)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a program by a short name gets %d", answer.StatusCode)
	}
	if answer = s.send("GET", "/v1/checkers", "", "Host: hdsd.example, Origin: https://hdsd.example"); answer.StatusCode != http.StatusOK {
		t.Errorf("the page of a name that is allowed gets %d", answer.StatusCode)
	}
	if answer = s.send("POST", "/v3/discovery:endpoints", `{"node": {"id": "x"}}`, "Host: hdsd_rest, Content-Type: application/json"); answer.StatusCode != http.StatusOK {
		t.Errorf("an Envoy that polls gets %d", answer.StatusCode)
	}
}

// send asks once; headers are "Name: value", between commas.
func (s *site) send(method, path, body, headers string) *http.Response {
	s.t.Helper()
	var content io.Reader
	if method != "GET" && method != "OPTIONS" {
		content = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.HTTPAddress()+path, content)
	if err != nil {
		s.t.Fatal(err)
	}
	for header := range strings.SplitSeq(headers, ", ") {
		name, value, _ := strings.Cut(header, ": ")
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	return answer
}

// holdPolicy: a browser runs nothing, shows nothing in a frame, and guesses no type.
func holdPolicy(t *testing.T, path string, header http.Header) {
	t.Helper()
	policy := header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s has the policy %q, %q", path, policy, header.Get("X-Content-Type-Options"))
	}
}
