package authority

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

// Authority issues certificates.
type Authority struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// Edit changes a certificate before it is signed.
type Edit func(*x509.Certificate)

// Until sets when a certificate expires.
func Until(end time.Time) Edit { return func(c *x509.Certificate) { c.NotAfter = end } }

// From sets when a certificate becomes valid.
func From(begin time.Time) Edit { return func(c *x509.Certificate) { c.NotBefore = begin } }

// URI adds an alternative name.
func URI(t testing.TB, uri string) Edit {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *x509.Certificate) { c.URIs = append(c.URIs, u) }
}

// New makes an authority that is valid for an hour, unless it is edited.
func New(t testing.TB, name string, edits ...Edit) *Authority {
	t.Helper()
	a := &Authority{Key: newKey(t)}
	template := authorityTemplate(name, edits)
	a.Certificate = sign(t, template, template, &a.Key.PublicKey, a.Key)
	return a
}

// Below makes an authority that this one has signed.
func (a *Authority) Below(t testing.TB, name string, edits ...Edit) *Authority {
	t.Helper()
	below := &Authority{Key: newKey(t)}
	below.Certificate = sign(t, authorityTemplate(name, edits), a.Certificate, &below.Key.PublicKey, a.Key)
	return below
}

// PEM is the authority's certificate.
func (a *Authority) PEM() string { return encode("CERTIFICATE", a.Certificate.Raw) }

// Pool holds the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// Pair is a certificate and its key, also in PEM.
type Pair struct {
	tls.Certificate
	Chain, Key string
}

// Issue makes a certificate for servers and clients, for a DNS name and 127.0.0.1. It is
// valid for an hour, unless it is edited.
func (a *Authority) Issue(t testing.TB, name string, edits ...Edit) Pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, edit := range edits {
		edit(template)
	}
	key := newKey(t)
	leaf := sign(t, template, a.Certificate, &key.PublicKey, a.Key)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := Pair{Chain: encode("CERTIFICATE", leaf.Raw), Key: encode("PRIVATE KEY", encoded)}
	if p.Certificate, err = tls.X509KeyPair([]byte(p.Chain), []byte(p.Key)); err != nil {
		t.Fatal(err)
	}
	return p
}

// Save puts files into a folder, each by an atomic move.
func Save(t testing.TB, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func authorityTemplate(name string, edits []Edit) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
