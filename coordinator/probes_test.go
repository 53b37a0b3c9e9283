package coordinator_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/coordinator"
	pki "hdsd/test/authority"
)

// TestProbesNeedNoCertificate covers the address for probes, which serves nothing else.
func TestProbesNeedNoCertificate(t *testing.T) {
	t.Parallel()
	s := secured(t, pki.New(t, "one"), strings.ReplaceAll(quick, `"127.0.0.1:0"`, `"127.0.0.1:0", `+mutual)+`probes: {address: "127.0.0.1:0"}`+"\n")
	ask := func(method, path, host string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.ProbesAddress()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Content-Type", "text/plain")
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}).Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		holdPolicy(t, path, answer.Header)
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	s.eventually("readiness", func() bool { code, _ := ask("GET", "/readyz", ""); return code == http.StatusOK })
	for path, want := range map[string]string{"/healthz": "alive", "/readyz": "ready", "/metrics": "hdsd_ready 1"} {
		if code, text := ask("GET", path, ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if code, _ := ask("GET", path, "evil.example"); code != http.StatusMisdirectedRequest {
			t.Errorf("%s by another's name: %d", path, code)
		}
	}
	if first := answerTo(t, s.ProbesAddress(), "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); first != "HTTP/1.1 404 Not Found\r\n" {
		t.Errorf("OPTIONS *: %s", first)
	}
	for _, path := range append(paths, "/", "/debug/pprof/", "//v1/endpoints", "/v1/../metrics", "/metrics/") {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			if method == "GET" && (path == "/healthz" || path == "/readyz" || path == "/metrics") {
				continue
			}
			if code, text := ask(method, path, ""); code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, path, code, text)
			}
		}
	}
}

// answerTo returns the first line that an address answers to bytes.
func answerTo(t *testing.T, address, request string) string {
	t.Helper()
	connection, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	err = connection.SetDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = connection.Write([]byte(request))
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return line
}

// logs is a log that can be read while it is written.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestInsecureListeners covers the log and the metric.
func TestInsecureListeners(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]float64{"0.0.0.0:0": 1, "127.0.0.1:0": 0} {
		said := &logs{}
		text := strings.Replace(quick, `grpc: {address: "127.0.0.1:0"}`, `grpc: {address: "`+address+`", insecure: true}`, 1)
		built, err := coordinator.New(t.Context(), configuration(t, t.TempDir(), text, static("web", "127.0.0.1:1")), coordinator.Options{Log: zerolog.New(said)})
		if err != nil {
			t.Fatal(err)
		}
		s := &site{Coordinator: built, t: t}
		ended := make(chan error, 1)
		go func() { ended <- built.Run(t.Context()) }()
		s.ready()
		if got := s.scrape().samples[`hdsd_listener_insecure{listener="grpc"}`]; got != want {
			t.Errorf("on %s the metric is %v", address, got)
		}
		if got := strings.Count(said.String(), `"event":"listener_insecure","listener":"grpc"`); float64(got) != want {
			t.Errorf("on %s the log says it %d times: %s", address, got, said)
		}
		if err := built.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	}
}
