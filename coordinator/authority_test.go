package coordinator_test

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
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates; ca.pem, server.pem and server.key are in its
// folder.
type authority struct {
	t           testing.TB
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	der         []byte
}

func newAuthority(t testing.TB, dir string) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.der = der
	server, key := a.issue(x509.ExtKeyUsageServerAuth)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "server.pem": {Type: "CERTIFICATE", Bytes: server}, "server.key": {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) issue(use x509.ExtKeyUsage, names ...string) (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key = newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	for _, name := range names {
		if parsed, err := url.Parse(name); err == nil && parsed.Scheme != "" {
			template.URIs = append(template.URIs, parsed)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// named trusts the authority, and shows a certificate of it with these names.
func (a *authority) named(names ...string) *tls.Config {
	c := a.client(false)
	der, key := a.issue(x509.ExtKeyUsageClientAuth, names...)
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return c
}

// client trusts the authority, and shows a certificate of it if told so.
func (a *authority) client(shown bool) *tls.Config {
	a.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der}))
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if shown {
		der, key := a.issue(x509.ExtKeyUsageClientAuth)
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	}
	return c
}
