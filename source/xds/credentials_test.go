package xds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	credentialv3 "github.com/envoyproxy/go-control-plane/envoy/config/grpc_credential/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"

	"hdsd/envoy/rules"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.key, a.pem, _ = issue(t, template, nil)
	return a
}

// issue makes a certificate, of itself where there is no authority.
func issue(t *testing.T, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// pair is a certificate and its key for a name.
func (a *authority) pair(t *testing.T, name string) (chain, key []byte) {
	t.Helper()
	_, _, chain, key = issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}, a)
	return chain, key
}

// mutualTLS makes a server's credentials that ask for a client's certificate
// of one of the authorities.
func mutualTLS(t *testing.T, own *authority, clients ...*authority) grpc.ServerOption {
	t.Helper()
	chain, key := own.pair(t, "one")
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for _, c := range clients {
		pool.AddCert(c.certificate)
	}
	return grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
}

func filename(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}

func inlineString(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

// secured is a source with TLS and the files of a folder.
func secured(folder string) *corev3.ConfigSource {
	from := clone(deltaSource)
	from.GetApiConfigSource().GetGrpcServices()[0].GetGoogleGrpc().ChannelCredentials = sslCredentials(&corev3.GrpcService_GoogleGrpc_SslCredentials{
		RootCerts: filename(filepath.Join(folder, "ca.pem")), CertChain: filename(filepath.Join(folder, "chain.pem")),
		PrivateKey: filename(filepath.Join(folder, "key.pem")),
	})
	return from
}

func sslCredentials(ssl *corev3.GrpcService_GoogleGrpc_SslCredentials) *corev3.GrpcService_GoogleGrpc_ChannelCredentials {
	return &corev3.GrpcService_GoogleGrpc_ChannelCredentials{
		CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_ChannelCredentials_SslCredentials{SslCredentials: ssl},
	}
}

func write(t *testing.T, folder, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMutualTLS: files are read again with each connection, and broken ones
// leave the last good ones in use.
func TestMutualTLS(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		folder, servers, clients, others := t.TempDir(), newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
		put := func(roots, own *authority, name string) {
			chain, key := own.pair(t, name)
			write(t, folder, "ca.pem", roots.pem)
			write(t, folder, "chain.pem", chain)
			write(t, folder, "key.pem", key)
		}
		put(servers, clients, "hdsd-1")
		s := newScript(t)
		stop := n.serve("one", s.register, mutualTLS(t, servers, clients))
		r := n.run(secured(folder))
		defer r.stop()
		p := next(t, s.delta)
		equal(t, "client", clientName(p.stream.Context()), "hdsd-1")

		put(servers, clients, "hdsd-2")
		p.end(errEnough)
		p = reconnect(t, s.delta)
		equal(t, "another certificate", clientName(p.stream.Context()), "hdsd-2")

		write(t, folder, "key.pem", []byte("nonsense"))
		p.end(errEnough)
		p = reconnect(t, s.delta)
		equal(t, "last good certificate", clientName(p.stream.Context()), "hdsd-2")
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1"))))
		r.latest()

		put(servers, clients, "hdsd-3")
		stop()
		stop = n.serve("one", s.register, mutualTLS(t, others, clients))
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "servers of another authority", len(s.delta), 0)
		has(t, "error", r.Status().Types[0].LastError, "certificate signed by unknown authority")
		put(others, clients, "hdsd-3")
		p = reconnect(t, s.delta)
		equal(t, "another authority", clientName(p.stream.Context()), "hdsd-3")
		stop()
	})
}

func clientName(ctx context.Context) string {
	p, _ := grpcpeer.FromContext(ctx)
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return "none"
	}
	return info.State.PeerCertificates[0].Subject.CommonName
}

// TestMetadata: what streams are sent with, the token as its file is when the
// stream begins.
func TestMetadata(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		folder, servers, clients := t.TempDir(), newAuthority(t, "servers"), newAuthority(t, "clients")
		chain, key := clients.pair(t, "hdsd")
		write(t, folder, "ca.pem", servers.pem)
		write(t, folder, "chain.pem", chain)
		write(t, folder, "key.pem", key)
		write(t, folder, "token", []byte("first\n"))
		from := secured(folder)
		service := from.GetApiConfigSource().GetGrpcServices()[0]
		service.InitialMetadata = []*corev3.HeaderValue{{Key: "x-team", Value: "a 100%% match"}, {Key: "x-raw-bin", RawValue: []byte{1, 255}}}
		service.GetGoogleGrpc().CallCredentials = []*corev3.GrpcService_GoogleGrpc_CallCredentials{
			accessToken("secret"), tokenFile(filename(filepath.Join(folder, "token")), "X-Token", "Key "),
		}
		s := newScript(t)
		stop := n.serve("one", s.register, mutualTLS(t, servers, clients))
		defer stop()
		r := n.run(from)
		defer r.stop()
		p := next(t, s.delta)
		md, _ := metadata.FromIncomingContext(p.stream.Context())
		equal(t, "metadata", fmt.Sprint(md["x-team"], md["x-raw-bin"], md["authorization"], md["x-token"]), "[a 100% match] [\x01\xff] [Bearer secret] [Key first]")

		write(t, folder, "token", []byte("second"))
		p.end(errEnough)
		md, _ = metadata.FromIncomingContext(reconnect(t, s.delta).stream.Context())
		equal(t, "token", fmt.Sprint(md["x-token"]), "[Key second]")
	})
}

func accessToken(token string) *corev3.GrpcService_GoogleGrpc_CallCredentials {
	return &corev3.GrpcService_GoogleGrpc_CallCredentials{
		CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_AccessToken{AccessToken: token},
	}
}

func tokenFile(from *corev3.DataSource, key, prefix string) *corev3.GrpcService_GoogleGrpc_CallCredentials {
	type plugin = corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin
	return &corev3.GrpcService_GoogleGrpc_CallCredentials{
		CredentialSpecifier: &corev3.GrpcService_GoogleGrpc_CallCredentials_FromPlugin{FromPlugin: &plugin{
			Name: fileBasedName,
			ConfigType: &corev3.GrpcService_GoogleGrpc_CallCredentials_MetadataCredentialsFromPlugin_TypedConfig{
				TypedConfig: pack(&credentialv3.FileBasedMetadataConfig{SecretData: from, HeaderKey: key, HeaderPrefix: prefix}),
			},
		}},
	}
}

func TestRead(t *testing.T) {
	t.Setenv("HDSD_TEST_SECRET", "from the environment")
	folder := t.TempDir()
	write(t, folder, "secret", []byte("from a file"))
	tests := map[string]struct {
		from       *corev3.DataSource
		want, fail string
	}{
		"file":          {filename(filepath.Join(folder, "secret")), "from a file", ""},
		"no file":       {filename(filepath.Join(folder, "nothing")), "", "no such file"},
		"text":          {inlineString("text"), "text", ""},
		"bytes":         {&corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("bytes")}}, "bytes", ""},
		"environment":   {&corev3.DataSource{Specifier: &corev3.DataSource_EnvironmentVariable{EnvironmentVariable: "HDSD_TEST_SECRET"}}, "from the environment", ""},
		"not set":       {&corev3.DataSource{Specifier: &corev3.DataSource_EnvironmentVariable{EnvironmentVariable: "HDSD_TEST_NOTHING"}}, "", "is not set"},
		"nothing":       {nil, "", "needs a filename"},
		"nothing in it": {&corev3.DataSource{}, "", "needs a filename"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := read(test.from)
			equal(t, "data", string(got), test.want)
			if test.fail == "" && err != nil || test.fail != "" && err == nil {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				has(t, "error", err.Error(), test.fail)
			}
		})
	}
}
