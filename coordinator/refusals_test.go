package coordinator_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// early is how long a test waits for an answer that must not come yet.
const early = 100 * time.Millisecond

// lateBodies are requests that are refused whatever their body is.
var lateBodies = []struct {
	want               int
	method, path, name string // the name is that of the certificate
	headers            map[string]string
}{
	{403, "POST", "/v1/freeze", "a.envoy.internal", nil},
	{401, "POST", "/v1/freeze", "ann.internal", map[string]string{"authorization": "Bearer unknown"}},
	{403, "POST", "/v1/freeze", "boss.internal", map[string]string{"origin": "http://evil.example"}},
	{415, "POST", "/v1/freeze", "boss.internal", map[string]string{"content-type": "text/plain"}},
	{405, "PUT", "/v3/discovery:clusters", "boss.internal", nil},
	{405, "POST", "/v1/endpoints", "boss.internal", nil},
	{404, "POST", "/nothing", "boss.internal", nil},
}

// TestRefusalWaitsForBody covers clients that send the body late: they get each refusal. An early response
// would reset HTTP/2 streams and close HTTP/1.1 connections.
func TestRefusalWaitsForBody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	for _, c := range lateBodies {
		headers := map[string]string{"content-type": "application/json"}
		maps.Copy(headers, c.headers)
		for protocol, ask := range map[string]func(*testing.T, net.Conn, string, string, map[string]string) int{"h2": lateOverHTTP2, "http/1.1": lateOverHTTP1} {
			t.Run(fmt.Sprintf("%s %s %s for %s %d", protocol, c.method, c.path, c.name, c.want), func(t *testing.T) {
				t.Parallel()
				with := ca.named(c.name)
				with.NextProtos = []string{protocol}
				conn, err := tls.Dial("tcp", s.HTTPAddress(), with)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				if got := ask(t, conn, c.method, c.path, headers); got != c.want {
					t.Errorf("%d", got)
				}
			})
		}
	}
}

// lateOverHTTP1 sends the body later than the headers.
func lateOverHTTP1(t *testing.T, conn net.Conn, method, path string, headers map[string]string) int {
	t.Helper()
	head := &bytes.Buffer{}
	fmt.Fprintf(head, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n", method, path)
	for name, value := range headers {
		fmt.Fprintf(head, "%s: %s\r\n", name, value)
	}
	if _, err := conn.Write(append(head.Bytes(), "\r\n"...)); err != nil {
		t.Fatal(err)
	}
	type result struct {
		answer *http.Response
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		answered <- result{answer, err}
	}()
	select {
	case early := <-answered:
		t.Fatalf("answered before the body: %v %v", early.answer, early.err)
	case <-time.After(early):
	}
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.answer.Body.Close()
	if _, err := io.ReadAll(got.answer.Body); err != nil {
		t.Fatal(err)
	}
	if got.answer.Close {
		t.Error("the connection ends, though all was read")
	}
	return got.answer.StatusCode
}

// lateOverHTTP2 sends DATA later than HEADERS.
func lateOverHTTP2(t *testing.T, conn net.Conn, method, path string, headers map[string]string) (code int) {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}, {"content-length", "2"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // into memory
	}
	for name, value := range headers {
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err := io.WriteString(conn, http2.ClientPreface)
	if err == nil {
		err = framer.WriteSettings()
	}
	if err == nil {
		err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	answered, done := make(chan string, 100), make(chan struct{})
	go func() { // what concerns the stream, until a PING that follows it comes back
		defer close(done)
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				answered <- err.Error()
				return
			}
			switch f := frame.(type) {
			case *http2.MetaHeadersFrame:
				answered <- f.PseudoValue("status")
			case *http2.DataFrame:
				answered <- "DATA"
				if f.StreamEnded() {
					answered <- "END"
				}
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				answered <- frame.Header().Type.String()
			case *http2.PingFrame:
				return
			}
		}
	}()
	select {
	case early := <-answered:
		t.Fatalf("answered before the body: %s", early)
	case <-time.After(early):
	}
	if err := framer.WriteData(1, true, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != "END" {
		select {
		case part := <-answered:
			got = append(got, part)
		case <-time.After(patience):
			t.Fatalf("got only %v", got)
		}
	}
	if err := framer.WritePing(false, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	<-done
	close(answered)
	for part := range answered {
		got = append(got, part)
	}
	if text := strings.Join(got[1:], " "); strings.Trim(text, "DATEN ") != "" {
		t.Errorf("got %v", got)
	}
	_, _ = fmt.Sscan(got[0], &code)
	return code
}

// TestCurlGetsRefusals covers curl for an operator without the role.
func TestCurlGetsRefusals(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatalf("%v: test/setup installs it", err)
	}
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	certificate := ca.named("a.envoy.internal").Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	shown = append(shown, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	file := filepath.Join(dir, "client.pem")
	if err := os.WriteFile(file, shown, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"--http1.1", "--http2"} {
		for range 30 {
			// #nosec G204
			out, err := exec.CommandContext(t.Context(), curl, "-sS", "-k", protocol, "--cert", file, "-H", "Content-Type: application/json",
				"-d", `{"reason": "drill", "author": "ann"}`, "https://"+s.HTTPAddress()+"/v1/freeze").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "OPERATOR") {
				t.Errorf("%s: %v: %q", protocol, err, out)
			}
		}
	}
}
