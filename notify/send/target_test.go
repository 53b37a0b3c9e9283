package send

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/notify"
)

var aNotice = notify.Notice{ID: "1", Condition: notify.Condition{Key: notify.Key{Kind: notify.NoCheckers}, Since: time.Now(), Text: "x"}}

// attempt sends a notice to a real server.
func attempt(t *testing.T, serve http.HandlerFunc) (answer string, err error) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	s := newSender(&Options{Node: "hdsd-1"}, http.DefaultTransport)
	return s.send(t.Context(), &Target{Type: Webhook, URL: server.URL + "/hook?key=hunter2"}, []notify.Notice{aNotice}, time.Now())
}

// TestAnswers: which are success, which are refusals for good, and what is shown of them.
func TestAnswers(t *testing.T) {
	for code, want := range map[int]string{
		200: "", 204: "", 301: "redirects", 400: "refused", 401: "401", 404: "404", 413: "refused", 422: "refused", 429: "429", 500: "500",
	} {
		answer, err := attempt(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(code)
			if code != http.StatusNoContent {
				_, _ = io.WriteString(w, strings.Repeat("because ", 1000))
			}
		})
		_, final := err.(refusal) //nolint:errorlint // send wraps nothing
		switch {
		case want == "" && err != nil, want != "" && err == nil, final != (want == "refused"):
			t.Errorf("%d gives %v, final %t", code, err, final)
		case err != nil && want != "refused" && !strings.Contains(err.Error(), want):
			t.Errorf("%d gives %v", code, err)
		case len(answer) > maxAnswer+50:
			t.Errorf("%d gives %d bytes", code, len(answer))
		}
	}
}

// TestNoErrorShowsTheURL, which may have a secret.
func TestNoErrorShowsTheURL(t *testing.T) {
	_, err := attempt(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		c.Close()
	})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestASlowAnswerIsWaitedFor, and one that never comes is not.
func TestASlowAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		s := newSender(&Options{}, w)
		w.set(func(posted) (int, error) { time.Sleep(attemptTimeout - time.Second); return http.StatusOK, nil })
		if _, err := s.send(t.Context(), &Target{Type: Webhook, URL: "http://a.test"}, []notify.Notice{aNotice}, time.Now()); err != nil {
			t.Error(err)
		}
		w.set(always(0))
		began := time.Now()
		if _, err := s.send(t.Context(), &Target{Type: Webhook, URL: "http://a.test"}, []notify.Notice{aNotice}, time.Now()); err == nil || time.Since(began) != attemptTimeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestTheSignature is that of the body, by the secret as the file has it now; the body says
// when it was sent.
func TestTheSignature(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	w := &wire{}
	s := newSender(&Options{Node: "hdsd-1", ReadSecret: os.ReadFile}, w)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, secret := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.send(t.Context(), &Target{Type: Webhook, URL: "http://a.test", SecretFile: path}, []notify.Notice{aNotice}, now); err != nil {
			t.Fatal(err)
		}
		got := w.take()[0]
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(got.body))
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); got.header.Get("X-Hdsd-Signature") != want {
			t.Errorf("%q, want %q", got.header.Get("X-Hdsd-Signature"), want)
		}
		var d map[string]any
		if err := json.Unmarshal([]byte(got.body), &d); err != nil || d["sentAt"] != "2026-01-02T03:04:05Z" || d["node"] != "hdsd-1" {
			t.Errorf("%s: %v", got.body, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.send(t.Context(), &Target{Type: Webhook, URL: "http://a.test", SecretFile: path}, []notify.Notice{aNotice}, now); err == nil || len(w.take()) > 0 {
		t.Errorf("without its secret: %v", err)
	}
}

// TestATestIsMarked as such, for either type.
func TestATestIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", nil, webhook("a"), alertmanager())
		defer b.stop()
		for name, want := range map[string]string{"a": `"kind":"TEST","status":"test"`, "am": `"alertname":"HdsdTest"`} {
			answer, known, err := b.Test(t.Context(), name)
			if got := b.wire.take(); err != nil || !known || answer != "200 as it is" || len(got) != 1 || !strings.Contains(got[0].body, want) {
				t.Errorf("%s: %q, %t, %v, %+v", name, answer, known, err, got)
			}
		}
		b.wire.set(always(http.StatusInternalServerError))
		if _, known, err := b.Test(t.Context(), "a"); !known || err == nil {
			t.Errorf("%t, %v", known, err)
		}
		if _, known, _ := b.Test(t.Context(), "nobody"); known {
			t.Error("there is no such receiver")
		}
		if s := b.States(); s[0].Open != 0 || !s[0].FailingSince.IsZero() {
			t.Errorf("a test counts: %+v", s[0])
		}
	})
}

// TestHowReceiversKnowHdsd: by a password, a token or a certificate, as the files say now.
func TestHowReceiversKnowHdsd(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var got *http.Request
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are to fail
	server.StartTLS()
	defer server.Close()
	own := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	chain := file("chain.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})))
	files := TLS{CA: chain, Chain: chain, Key: file("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))}
	s := newSender(&Options{ReadSecret: os.ReadFile, ReadTLS: func(f TLS) (*tls.Config, error) {
		pair, err := tls.LoadX509KeyPair(f.Chain, f.Key)
		return &tls.Config{RootCAs: pool(t, f.CA), Certificates: []tls.Certificate{pair}}, err
	}}, http.DefaultTransport)
	send := func(to Target) error {
		to.Type, to.URL = Webhook, server.URL
		_, err := s.send(t.Context(), &to, []notify.Notice{aNotice}, time.Now())
		return err
	}
	if err := send(Target{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
	if err := send(Target{TLS: files, User: "ann", PasswordFile: file("password", "hunter2")}); err != nil {
		t.Fatal(err)
	}
	if user, password, _ := got.BasicAuth(); user != "ann" || password != "hunter2" || len(got.TLS.PeerCertificates) != 1 {
		t.Errorf("known by %s, %s, %d certificates", user, password, len(got.TLS.PeerCertificates))
	}
	for _, token := range []string{"first", "second"} {
		if err := send(Target{TLS: files, TokenFile: file("token", token)}); err != nil || got.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("known by %q: %v", got.Header.Get("Authorization"), err)
		}
	}
	if err := send(Target{TLS: files, TokenFile: filepath.Join(dir, "none")}); err == nil {
		t.Error("sent without its token")
	}
}

func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(text)
	return p
}
