package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func TestErrorsOfTheCoordinator(t *testing.T) {
	address := serveFake(t, newFake())
	for _, c := range []struct{ name, want string }{
		{"nowhere", "hdsd: unknown cluster \"nowhere\" ('hdsd clusters' lists all)\n"},
		{"wbe", "hdsd: unknown cluster \"wbe\": did you mean web? ('hdsd clusters' lists all)\n"},
		{"plain-eu", "hdsd: unknown cluster \"plain-eu\": did you mean plain? ('hdsd clusters' lists all)\n"},
	} {
		status, out, errors := hdsd(t, "endpoints", c.name, "--server", address)
		if status != exitFailed || out != "" || errors != c.want {
			t.Errorf("an unknown cluster: exit status %d, %s%s", status, out, errors)
		}
	}
	status, _, errors := hdsd(t, "clusters", "--server", address, "--tls-ca", "testdata/none.pem")
	if status != exitFailed || !strings.Contains(errors, "--tls-ca: open testdata/none.pem") {
		t.Errorf("no such authorities: exit status %d, %s", status, errors)
	}
	f := newFake()
	f.failAfter = 1
	status, out, errors := hdsd(t, "endpoints", "--server", serveFake(t, f))
	if status != exitFailed || !strings.Contains(out, "10.0.0.2:8080") || !strings.Contains(errors, "stopping") {
		t.Errorf("stopping after a page: exit status %d, %s%s", status, out, errors)
	}
}

func TestUnknownEndpointIsReported(t *testing.T) {
	f := newFake()
	address := serveFake(t, f)
	want := "hdsd: no such endpoint in web; it has 10.0.0.1:8080, 10.0.0.2:8080 and more\n"
	for command, exits := range map[string]int{"endpoints": exitFailed, "history": exitFailed, "availability": exitFailed, "watch": exitDone} {
		for _, format := range []string{"json", "csv", "table"} {
			status, out, errors := hdsd(t, command, "web", "10.0.0.3:808", "-o", format, "--server", address)
			if status != exits || exits == exitFailed && out != "" || errors != want {
				t.Errorf("%s -o %s: exit status %d, %s%q", command, format, status, out, errors)
			}
		}
	}
	f.gone = "10.0.0.9:8080"
	for command, exits := range map[string]int{"endpoints": exitFailed, "history": exitDone, "availability": exitDone} {
		args := []string{command, "web", f.gone, "--server", address}
		if command != "endpoints" {
			args = append(args, "--since", "1h")
		}
		status, out, errors := hdsd(t, args...)
		if status != exits || strings.Count(out, "\n") != 1-exits || !strings.Contains(errors, "no such endpoint in web; it has 10.0.0.1:8080") {
			t.Errorf("%s of one that was: exit status %d, %s%q", command, status, out, errors)
		}
	}
	f.endpoints = nil
	if status, _, errors := hdsd(t, "endpoints", "web", "x", "--server", address); status != exitFailed || !strings.Contains(errors, "none at all") {
		t.Errorf("without endpoints: exit status %d, %q", status, errors)
	}
}

// TestAdviceByWhatAnswers speaks to what is no coordinator, or is spoken to
// in another way.
func TestAdviceByWhatAnswers(t *testing.T) {
	ca, pair := certify(t, "hdsd.test")
	stranger, _ := certify(t, "hdsd.test")
	secure := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}})
	pool := x509.NewCertPool()
	mutual := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	plain := serveFake(t, newFake())
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	webTLS := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "POST needs JSON", http.StatusUnsupportedMediaType)
	}))
	webTLS.EnableHTTP2, webTLS.TLS = true, &tls.Config{Certificates: []tls.Certificate{pair}}
	webTLS.StartTLS()
	t.Cleanup(webTLS.Close)
	named := []string{"--tls-ca", ca, "--tls-server-name", "hdsd.test"}
	for _, c := range []struct {
		what, server string
		flags        []string
		want         string // "" where it works
	}{
		{"TLS as it should be", secure, named, ""},
		{"nobody there", "127.0.0.1:1", nil, "nothing listens at 127.0.0.1:1: is 'hdsd serve' running there?"},
		{"nobody there, by TLS", "127.0.0.1:1", named, "nothing listens at 127.0.0.1:1"},
		{"no such host", "nowhere.invalid:1", nil, "unknown host nowhere.invalid"},
		{"plaintext to TLS", secure, nil, "speaks TLS: give --tls-ca FILE"},
		{"plaintext to mutual TLS", mutual, nil, "speaks TLS: give --tls-ca FILE"},
		{"TLS to plaintext", plain, named, "speaks no TLS: leave out --tls-ca"},
		{"HTTP", web.Listener.Addr().String(), nil, "it may be hdsd's HTTP address"},
		{"HTTP, by TLS", web.Listener.Addr().String(), named, "it may be hdsd's HTTP address"},
		{"HTTPS", webTLS.Listener.Addr().String(), named, "it may be hdsd's HTTP address"},
		{"another authority", secure, []string{"--tls-ca", stranger, "--tls-server-name", "hdsd.test"}, "did not sign"},
		{"another name", secure, []string{"--tls-ca", ca}, "--tls-server-name"},
		{"no certificate", mutual, named, "give --tls-cert and --tls-key"},
	} {
		status, out, errors := hdsd(t, append([]string{"clusters", "-o", "json", "--server", c.server}, c.flags...)...)
		if c.want == "" && (status != exitDone || out == "" || errors != "") ||
			c.want != "" && (status != exitFailed || out != "" || !strings.Contains(errors, c.want)) {
			t.Errorf("%s: exit status %d, %s%s, want %q", c.what, status, out, errors, c.want)
		}
	}
}

// serveTLS serves a fake over TLS until the test ends.
func serveTLS(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	return serveFake(t, newFake(), grpc.Creds(credentials.NewTLS(config)))
}

// certify makes a self-signed certificate, and returns the file to trust it by.
func certify(t *testing.T, name string) (file string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestSilenceIsBounded speaks to a port where connections are taken and nothing is said, as by an
// hdsd that hangs: diagnosis ends in time all the same, and says so.
func TestSilenceIsBounded(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ca, _ := certify(t, "hdsd.test")
	for _, flags := range [][]string{nil, {"--tls-ca", ca}} {
		status, out, errors := hdsd(t, append([]string{"clusters", "--server", silent.Addr().String()}, flags...)...)
		if status != exitFailed || out != "" || !strings.Contains(errors, "takes connections, but does not answer within 3s") {
			t.Errorf("a silent server, %q: exit status %d, %q, %q", flags, status, out, errors)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := diagnose(gone, "127.0.0.1:1", nil, ""); err == nil {
		t.Error("an ended context finds out something")
	}
}

// TestWhyThereAreNone: of a cluster without endpoints, the reason is given
// beside what is shown.
func TestWhyThereAreNone(t *testing.T) {
	f := newFake()
	f.endpoints = nil
	address := serveFake(t, f)
	const why = `no source has its ClusterLoadAssignment "idle" (mesh: it has none)` + "\n"
	for args, want := range map[string]string{
		"endpoints idle":                 "hdsd: idle has no endpoints: " + why,
		"endpoints idle 10.0.0.1:8080":   "hdsd: no such endpoint in idle; it has none at all: " + why,
		"endpoints web --health TIMEOUT": "hdsd: no endpoints of web with --health TIMEOUT\n",
	} {
		if _, _, errors := hdsd(t, append(strings.Fields(args), "--server", address)...); errors != want {
			t.Errorf("%s: %q, want %q", args, errors, want)
		}
	}
}
