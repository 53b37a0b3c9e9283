package peer_test

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
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"hdsd/peer"
)

// signed gives a certificate with the names of a template, and a new key.
func signed(t *testing.T, template x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// calling gives the context of a gRPC call, and the same caller's HTTP request.
func calling(leaf *x509.Certificate, verified bool, address string) []peer.Caller {
	state := tls.ConnectionState{}
	if leaf != nil {
		state.PeerCertificates = []*x509.Certificate{leaf}
	}
	if verified {
		state.VerifiedChains = [][]*x509.Certificate{{leaf}}
	}
	remote, _ := net.ResolveTCPAddr("tcp", address)
	ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: remote, AuthInfo: credentials.TLSInfo{State: state}})
	request := httptest.NewRequest("GET", "/", nil)
	request.RemoteAddr, request.TLS = address, &state
	return []peer.Caller{peer.FromContext(ctx), peer.OfRequest(request)}
}

func TestIdentity(t *testing.T) {
	spiffe, other := &url.URL{Scheme: "spiffe", Host: "prod", Path: "/envoy/a"}, &url.URL{Scheme: "spiffe", Host: "prod", Path: "/envoy/b"}
	all := x509.Certificate{
		URIs: []*url.URL{spiffe, other}, DNSNames: []string{"a.example", "b.example"},
		EmailAddresses: []string{"a@example.com"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, Subject: pkix.Name{CommonName: "a"},
	}
	for _, c := range []struct {
		what     string
		template x509.Certificate
		identity string
		names    []string
	}{
		{"everything", all, "spiffe://prod/envoy/a",
			[]string{"spiffe://prod/envoy/a", "spiffe://prod/envoy/b", "a.example", "b.example", "a@example.com", "10.0.0.1"}},
		{"DNS and e-mail", x509.Certificate{DNSNames: []string{"a.example"}, EmailAddresses: []string{"a@example.com"}}, "a.example", []string{"a.example", "a@example.com"}},
		{"e-mail", x509.Certificate{EmailAddresses: []string{"a@example.com"}, Subject: pkix.Name{CommonName: "a"}}, "a@example.com", []string{"a@example.com"}},
		{"IP", x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, Subject: pkix.Name{CommonName: "a"}}, "10.0.0.1", []string{"10.0.0.1"}},
		{"subject", x509.Certificate{Subject: pkix.Name{CommonName: "a", Organization: []string{"Example"}}}, "CN=a,O=Example", []string{}},
	} {
		leaf := signed(t, c.template)
		for i, got := range calling(leaf, true, "10.1.0.1:4000") {
			want := peer.Caller{Identity: c.identity, Names: c.names, Address: "10.1.0.1:4000", Leaf: leaf}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s (%d): %+v, want %+v", c.what, i, got, want)
			}
			if got.Key() != c.identity {
				t.Errorf("%s (%d): counted under %q", c.what, i, got.Key())
			}
		}
		for i, got := range calling(leaf, false, "10.1.0.1:4000") {
			if want := (peer.Caller{Address: "10.1.0.1:4000"}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, not verified (%d): %+v", c.what, i, got)
			}
		}
	}
}

// TestNoNames: a certificate without any name is told apart by its key.
func TestNoNames(t *testing.T) {
	a, b := calling(signed(t, x509.Certificate{}), true, "10.1.0.1:1")[0], calling(signed(t, x509.Certificate{}), true, "10.1.0.1:1")[0]
	if !strings.HasPrefix(a.Identity, "key sha256:") || a.Key() == b.Key() || a.Is(b) || !a.Is(a) {
		t.Errorf("%q and %q", a.Identity, b.Identity)
	}
}

func TestWithoutCertificate(t *testing.T) {
	for i, first := range calling(nil, false, "10.1.0.1:1") {
		again, another := calling(nil, false, "10.1.0.1:2")[i], calling(nil, false, "10.1.0.2:1")[i]
		if first.Key() == again.Key() || first.Identity != "" || !strings.Contains(first.Key(), "10.1.0.1:1") {
			t.Errorf("two connections count as %q and %q", first.Key(), again.Key())
		}
		if !first.Is(again) || first.Is(another) || first.Fingerprint() != "" || first.Host() != "10.1.0.1" {
			t.Errorf("%+v, %+v, %+v", first, again, another)
		}
	}
	if got := peer.FromContext(context.Background()); !reflect.DeepEqual(got, peer.Caller{}) {
		t.Errorf("of nobody: %+v", got)
	}
	if got := (peer.Caller{Address: "bufconn"}).Host(); got != "bufconn" {
		t.Errorf("host %q", got)
	}
}

// TestIs holds which certificates are one caller's. A renewed one is.
func TestIs(t *testing.T) {
	with := func(name string, dns ...string) peer.Caller {
		return calling(signed(t, x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: dns}), true, "10.1.0.1:1")[0]
	}
	mine := with("a", "a.example")
	for what, c := range map[string]struct {
		other peer.Caller
		same  bool
	}{
		"renewed":               {with("a", "a.example"), true},
		"another subject":       {with("b", "a.example"), false},
		"another name":          {with("a", "b.example"), false},
		"one name more":         {with("a", "a.example", "b.example"), false},
		"one name less":         {with("a"), false},
		"without a certificate": {peer.Caller{Address: "10.1.0.1:1"}, false},
	} {
		if mine.Is(c.other) != c.same || c.other.Is(mine) != c.same {
			t.Errorf("%s: one caller: %t", what, !c.same)
		}
	}
}

// TestWith: what was found out about a caller stands above what its connection shows.
func TestWith(t *testing.T) {
	found := peer.Caller{Identity: "token:ci", Address: "10.1.0.1:1"}
	remote, _ := net.ResolveTCPAddr("tcp", "10.9.9.9:9")
	ctx := peer.With(grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: remote}), found)
	if got := peer.FromContext(ctx); !reflect.DeepEqual(got, found) {
		t.Errorf("gRPC: %+v", got)
	}
	if got := peer.OfRequest(httptest.NewRequest("GET", "/", nil).WithContext(ctx)); !reflect.DeepEqual(got, found) {
		t.Errorf("HTTP: %+v", got)
	}
}
