package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// demanding lets in only calls that bear a token.
func demanding(token string) grpc.ServerOption {
	return grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if got := metadata.ValueFromIncomingContext(ctx, "authorization"); len(got) != 1 || got[0] != "Bearer "+token {
			return nil, status.Errorf(codes.Unauthenticated, "shown %q", got)
		}
		return handle(ctx, request)
	})
}

func TestTheTokenOfTheEnvironment(t *testing.T) {
	address := serveFake(t, newFake(), demanding("s3cret"))
	for _, c := range []struct {
		token, server string
		want          int
		says          string
	}{
		{" s3cret\n", address, exitDone, ""},
		{"s3cret", strings.Replace(address, "127.0.0.1", "localhost", 1), exitDone, ""},
		{"other", address, exitFailed, `shown ["Bearer other"]`},
		{"", address, exitFailed, "shown []"},
		{"s3cret", "192.0.2.1:18000", exitUsage, "HDSD_TOKEN would be readable on its way to 192.0.2.1:18000"},
		{"s3cret", "example.invalid:18000", exitUsage, "HDSD_TOKEN would be readable"},
		{"s3 cret", address, exitUsage, "HDSD_TOKEN holds characters"},
		{"s3cretü", address, exitUsage, "HDSD_TOKEN holds characters"},
	} {
		t.Setenv("HDSD_TOKEN", c.token)
		if got, _, errors := hdsd(t, "clusters", "-o", "json", "--server", c.server); got != c.want || !strings.Contains(errors, c.says) || strings.Contains(errors, "s3cret") {
			t.Errorf("%q to %s: exit status %d, %s, want %d, %q", c.token, c.server, got, errors, c.want, c.says)
		}
	}
}

// TestFilesOfTheEnvironment: flags stand above it.
func TestFilesOfTheEnvironment(t *testing.T) {
	ca, pair := certify(t, "hdsd.test")
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(leaf)
	mutual := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HDSD_TLS_CA", ca)
	t.Setenv("HDSD_TLS_CERT", ca)
	t.Setenv("HDSD_TLS_KEY", keyFile)
	ask := func(flags ...string) (int, string) {
		code, _, errors := hdsd(t, append([]string{"clusters", "-o", "json", "--server", mutual, "--tls-server-name", "hdsd.test"}, flags...)...)
		return code, errors
	}
	if code, errors := ask(); code != exitDone {
		t.Errorf("exit status %d, %s", code, errors)
	}
	if code, errors := ask("--tls-ca", "testdata/none.pem"); code != exitFailed || !strings.Contains(errors, "testdata/none.pem") {
		t.Errorf("another file by a flag: exit status %d, %s", code, errors)
	}
	// What is written for an Envoy has nothing of the operator's.
	if code, out, errors := hdsd(t, "bootstrap", "checker", "--server", "10.0.0.5:18000", "--id", "a"); code != exitDone || strings.Contains(out, ca) {
		t.Errorf("a bootstrap: exit status %d, %s%s", code, out, errors)
	}
}
