package hds_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"

	"hdsd/hds"
)

// authority signs certificates.
type authority struct {
	testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{TB: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.key = template, newKey(t)
	a.certificate = a.sign(template, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		a.Fatal(err)
	}
	return signed
}

// issue gives a new certificate, with a new key.
func (a *authority) issue(name string, dns ...string) tls.Certificate {
	key := newKey(a)
	leaf := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: dns,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// secured serves f.server to those that a has signed for, all at one host.
func (f *fixture) secured(a *authority) (client func(tls.Certificate) healthv3.HealthDiscoveryServiceClient) {
	return f.securedAt(a, "10.1.0.1")
}

func (f *fixture) securedAt(a *authority, host string) (client func(tls.Certificate) healthv3.HealthDiscoveryServiceClient) {
	ln := bufconn.Listen(1 << 20)
	g := grpc.NewServer(append(hds.ServerOptions(hds.Options{}), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{a.issue("hdsd", "hdsd")}, ClientCAs: a.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})))...)
	f.server.Register(g)
	f.Cleanup(g.Stop)
	go func() {
		_ = g.Serve(&from{ln, &net.TCPAddr{IP: net.ParseIP(host), Port: 40000}, func(c net.Conn) net.Conn { return c }})
	}()
	return func(own tls.Certificate) healthv3.HealthDiscoveryServiceClient {
		conn, err := grpc.NewClient("passthrough:///hdsd",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return ln.DialContext(ctx) }),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
				Certificates: []tls.Certificate{own}, RootCAs: a.pool(), ServerName: "hdsd",
			})))
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = conn.Close() })
		return healthv3.NewHealthDiscoveryServiceClient(conn)
	}
}

func TestFetchedReportIsBoundToTheCertificate(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		a := newAuthority(t)
		client := f.secured(a)
		mine := client(a.issue("a", "a.example"))
		if _, err := mine.FetchHealthCheck(f.ctx, hello(nodeIn("a", "z1"))); err != nil {
			t.Fatal(err)
		}
		same(t, "calls", f.sink.take(), "connected a")
		ctx := metadata.AppendToOutgoingContext(f.ctx, hds.NodeHeader, "a")
		for what, test := range map[string]struct {
			with tls.Certificate
			code codes.Code
		}{
			"another subject":     {a.issue("b", "a.example"), codes.Unauthenticated},
			"another name":        {a.issue("a", "b.example"), codes.Unauthenticated},
			"a name less":         {a.issue("a"), codes.Unauthenticated},
			"renewed, a new key":  {a.issue("a", "a.example"), codes.OK},
			"one name in another": {a.issue("a", "a.example", "b.example"), codes.Unauthenticated},
		} {
			if _, err := client(test.with).FetchHealthCheck(ctx, report(said{web1, up, 0})); status.Code(err) != test.code {
				t.Errorf("%s: %v", what, err)
			}
		}
		same(t, "calls", f.sink.take(), "reported a 1=HEALTHY")
		f.isRefused("without a certificate", f.fetch("10.1.0.1", report(said{web1, up, 0}), "a"), codes.Unauthenticated, "another client certificate")

		_, err := client(a.issue("b")).FetchHealthCheck(f.ctx, hello(nodeIn("a", "z1")))
		if status.Code(err) != codes.AlreadyExists {
			t.Errorf("another's fetch: %v", err)
		}
		stream, err := client(a.issue("b")).StreamHealthCheck(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(hello(nodeIn("a", "z1"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // less than the three seconds after which it is given up
		if _, err := mine.FetchHealthCheck(f.ctx, hello(nodeIn("a", "z1"))); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.AlreadyExists {
			t.Errorf("another's stream: %v", err)
		}
		same(t, "calls", f.sink.take())
	})
}

func TestRESTIsBoundToTheCertificate(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning(checked{1, web1})
		a := newAuthority(t)
		post := func(with *x509.Certificate, verified bool, m *healthv3.HealthCheckRequestOrEndpointHealthResponse, node string) int {
			r := httptest.NewRequestWithContext(f.ctx, http.MethodPost, hds.FetchPath, strings.NewReader(protojson.Format(m)))
			r.Header.Set(hds.NodeHeader, node)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{with}}
			if verified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{with, a.certificate}}
			}
			w := httptest.NewRecorder()
			f.server.Handler().ServeHTTP(w, r)
			return w.Code
		}
		mine := a.issue("a").Leaf
		for _, step := range []struct {
			what     string
			with     *x509.Certificate
			verified bool
			report   bool
			want     int
		}{
			{"fetch", mine, true, false, 200},
			{"report", mine, true, true, 200},
			{"renewed", a.issue("a").Leaf, true, true, 200},
			{"not verified", mine, false, true, 401},
			{"another's", a.issue("b").Leaf, true, true, 401},
			{"another's fetch", a.issue("b").Leaf, true, false, 409},
		} {
			m := hello(nodeIn("a", "z1"))
			if step.report {
				m = report(said{web1, up, 0})
			}
			if got := post(step.with, step.verified, m, "a"); got != step.want {
				t.Errorf("%s: HTTP status %d, want %d", step.what, got, step.want)
			}
		}
		same(t, "calls", f.sink.take(), "connected a", "reported a 1=HEALTHY", "reported a")
	})
}
