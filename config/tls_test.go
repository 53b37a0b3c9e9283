package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pem() string { return toPEM("CERTIFICATE", a.certificate.Raw) }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue returns a certificate and its key in PEM.
func (a *authority) issue(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return toPEM("CERTIFICATE", der), toPEM("PRIVATE KEY", encoded)
}

func toPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func save(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shake makes a handshake and gives the name that the server showed.
func shake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	failed := make(chan error, 1)
	go func() {
		err := tls.Server(far, server).HandshakeContext(t.Context())
		far.Close() // so that neither side waits for the other's alert
		failed <- err
	}()
	connection := tls.Client(near, client)
	err := connection.HandshakeContext(t.Context())
	near.Close()
	if serverErr := <-failed; serverErr != nil {
		return "", serverErr
	}
	if err != nil {
		return "", err
	}
	return connection.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestServerTLSFollowsItsFiles(t *testing.T) {
	folder := t.TempDir()
	ca, otherCA := newAuthority(t, "one"), newAuthority(t, "other")
	oldCertificate, oldKey := ca.issue(t, "old")
	newCertificate, newKey := ca.issue(t, "new")
	save(t, folder, map[string]string{"cert": oldCertificate, "key": oldKey, "ca": ca.pem()})
	files := &configv1.ServerTls{
		CertificateChainFile: filepath.Join(folder, "cert"), PrivateKeyFile: filepath.Join(folder, "key"), ClientCaFile: filepath.Join(folder, "ca"),
	}
	now := time.Now()
	var reports []string
	server, err := serverTLS(files, func(err error) { reports = append(reports, err.Error()) }, func() time.Time { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, mineKey := ca.issue(t, "client")
	pair, err := tls.X509KeyPair([]byte(mine), []byte(mineKey))
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // names differ on purpose
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	expect := func(want, refusal string) {
		t.Helper()
		got, err := shake(t, server, client)
		if got != want || (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
			t.Fatalf("got %q, %v, want %q, %q", got, err, want, refusal)
		}
	}
	expect("old", "")
	save(t, folder, map[string]string{"cert": newCertificate})
	expect("old", "") // not looked at again yet
	now = now.Add(time.Second)
	expect("old", "") // the key is missing still
	now = now.Add(time.Second)
	expect("old", "")
	if len(reports) != 1 || !strings.Contains(reports[0], "does not go with") {
		t.Fatalf("got reports %q", reports)
	}
	save(t, folder, map[string]string{"key": newKey})
	now = now.Add(time.Second)
	expect("new", "")
	save(t, folder, map[string]string{"ca": otherCA.pem()})
	now = now.Add(time.Second)
	expect("", "unknown authority")
	save(t, folder, map[string]string{"ca": "nonsense"})
	now = now.Add(time.Second)
	expect("", "unknown authority")
	if len(reports) != 2 || !strings.Contains(reports[1], "holds no certificate") {
		t.Fatalf("got reports %q", reports)
	}
}

func TestServerTLSWithoutClientCertificates(t *testing.T) {
	folder := t.TempDir()
	ca := newAuthority(t, "one")
	certificate, key := ca.issue(t, "server")
	save(t, folder, map[string]string{"cert": certificate, "key": key})
	server, err := ServerTLS(&configv1.ServerTls{
		CertificateChainFile: filepath.Join(folder, "cert"), PrivateKeyFile: filepath.Join(folder, "key"),
	}, nil, "h2")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := shake(t, server, &tls.Config{RootCAs: ca.pool(), ServerName: "server"}); name != "server" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
	old := &tls.Config{RootCAs: ca.pool(), ServerName: "server", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // to be refused
	if _, err := shake(t, server, old); err == nil {
		t.Error("TLS 1.1 was taken")
	}
	if _, err := shake(t, server, &tls.Config{RootCAs: ca.pool(), ServerName: "server", NextProtos: []string{"other"}}); err == nil {
		t.Error("a client without h2 was taken")
	}
}

func TestBrokenFilesAreNamed(t *testing.T) {
	folder := t.TempDir()
	ca := newAuthority(t, "one")
	certificate, key := ca.issue(t, "a")
	_, otherKey := ca.issue(t, "b")
	save(t, folder, map[string]string{
		"cert": certificate, "key": key, "other": otherKey, "ca": ca.pem(), "nonsense": "x",
		"encrypted": toPEM("ENCRYPTED PRIVATE KEY", []byte("x")),
	})
	tests := map[string]struct{ certificate, key, ca, want string }{
		"good":             {"cert", "key", "ca", ""},
		"no certificate":   {"none", "key", "", "grpc.tls.certificate_chain_file: FOLDER/none: cannot be read: no such file or directory"},
		"no key":           {"cert", "none", "", "grpc.tls.private_key_file: FOLDER/none: cannot be read: no such file or directory"},
		"no authorities":   {"cert", "key", "none", "grpc.tls.client_ca_file: FOLDER/none: cannot be read: no such file or directory"},
		"bad certificate":  {"nonsense", "key", "", "grpc.tls.certificate_chain_file: FOLDER/nonsense: holds no certificate"},
		"bad key":          {"cert", "nonsense", "", "grpc.tls.private_key_file: FOLDER/nonsense: holds no private key"},
		"bad authorities":  {"cert", "key", "key", "grpc.tls.client_ca_file: FOLDER/key: holds no certificate"},
		"another's key":    {"cert", "other", "", "grpc.tls.private_key_file: FOLDER/other: does not go with FOLDER/cert"},
		"encrypted key":    {"cert", "encrypted", "", "grpc.tls.private_key_file: FOLDER/encrypted: is encrypted"},
		"files exchanged":  {"key", "cert", "", "grpc.tls.certificate_chain_file: FOLDER/key: holds no certificate"},
		"certificate only": {"cert", "", "", "grpc.tls.private_key_file: is needed for TLS"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := "sources: [{name: a, config_source: {path: a}}]\n" +
				"grpc: {address: '0.0.0.0:1', tls: {certificate_chain_file: '" + test.certificate + "', private_key_file: '" + test.key + "', client_ca_file: '" + test.ca + "'}}"
			save(t, folder, map[string]string{"hdsd.yaml": text})
			_, problems := Load(filepath.Join(folder, "hdsd.yaml"))
			if test.want == "" {
				if len(problems) > 0 {
					t.Error(problems)
				}
				return
			}
			got := ""
			if len(problems) == 1 && problems[0].Line == 2 {
				got = strings.ReplaceAll(problems[0].Field+": "+problems[0].Message, folder, "FOLDER")
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got %v, want %s", problems, test.want)
			}
		})
	}
}
