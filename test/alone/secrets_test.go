package alone

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	secretv3 "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	gcp "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"hdsd/test/authority"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// secretServer gives secrets by SDS.
type secretServer struct {
	address string
	secrets *cache.LinearCache
}

// startSecretServer starts one without secrets.
func startSecretServer(t testing.TB) *secretServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &secretServer{address: listener.Addr().String(), secrets: cache.NewLinearCache(resource.SecretType)}
	server := grpc.NewServer()
	secretv3.RegisterSecretDiscoveryServiceServer(server, gcp.NewServer(t.Context(), s.secrets, nil))
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	return s
}

// door lets in who has a client certificate of an authority that it trusts now.
type door struct {
	mu      sync.Mutex
	trusted []*x509.CertPool
}

// trust replaces those that it trusts.
func (d *door) trust(all ...*authority.Authority) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trusted = nil
	for _, a := range all {
		d.trusted = append(d.trusted, a.Pool())
	}
}

// upstreams are those behind the door.
func (d *door) upstreams() upstream.Options {
	return upstream.Options{Protocol: upstream.HTTPS, TLS: &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert, VerifyConnection: d.verify,
	}}
}

func (d *door) verify(state tls.ConnectionState) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, pool := range d.trusted {
		if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
			return nil
		}
	}
	return errors.New("the client certificate is of an authority that is not trusted")
}

// takers are the Envoys that have taken a secret of the cluster, with how often.
func (p *Play) takers() map[*envoy.Process]uint64 {
	p.t.Helper()
	taken := map[*envoy.Process]uint64{}
	for _, process := range append(p.rig.Planes[:], p.rig.Checkers...) {
		for name, count := range process.Stats(p.t, `ssl_context_update_by_sds$`) {
			if count > 0 && strings.Contains(name, p.name+".") {
				taken[process] += count
			}
		}
	}
	return taken
}

// TestSecrets plays clusters whose endpoints want a client certificate, which comes by SDS:
// from a file, which only data planes have, and from a server.
func TestSecrets(t *testing.T) {
	t.Parallel()
	eachRelease(t, playSecrets)
}

func playSecrets(t *testing.T, version string) {
	t.Helper()
	server := startSecretServer(t)
	rig := NewRig(t, Options{
		Version: version, Checkers: 3, Static: staticCluster(t, "secrets", server.address),
		Config: "checkers: {sds_secrets: [a-client-certificate-of-a-server-comes-late, a-client-certificate-of-a-server-is-rotated]}\n",
	})
	var cases []Case
	for _, way := range []struct {
		name, source, warn string
		give               func(p *Play, pair authority.Pair)
		want               Verdict
		on                 map[string]Verdict
	}{
		{
			name: "file", source: "{path_config_source: {path: \"" + rig.dir + "/$name-secret.yaml\"}, resource_api_version: V3}", warn: "path_config_source", want: Left,
			give: func(p *Play, pair authority.Pair) {
				replace(p.t, filepath.Join(rig.dir, p.name+"-secret.yaml"), "resources:\n"+item("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
					fmt.Sprintf("{name: %s, tls_certificate: {certificate_chain: {inline_string: %q}, private_key: {inline_string: %q}}}", p.name, pair.Chain, pair.Key)))
			},
		},
		{ // Checkers before 1.38 take no secrets by SDS.
			name: "server", want: Same, on: map[string]Verdict{"1.36.4": Left},
			source: "{api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: secrets}}]}, resource_api_version: V3, initial_fetch_timeout: 1s}",
			give: func(p *Play, pair authority.Pair) {
				inline := func(text string) *corev3.DataSource {
					return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
				}
				if err := server.secrets.UpdateResource(p.name, &tlsv3.Secret{Name: p.name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
					CertificateChain: inline(pair.Chain), PrivateKey: inline(pair.Key),
				}}}); err != nil {
					p.t.Fatal(err)
				}
			},
		},
	} {
		first, second, third := authority.New(t, "first"), authority.New(t, "second"), authority.New(t, "third")
		give := func(a *authority.Authority) Step {
			return func(p *Play) {
				p.t.Helper()
				way.give(p, a.Issue(p.t, "client"))
			}
		}
		// rotate gives another one, until all have taken it that have the one before.
		rotate := func(a *authority.Authority) Step {
			return func(p *Play) {
				p.t.Helper()
				before := p.takers()
				give(a)(p)
				envoy.Eventually(p.t, fleet.Patience, "the new certificate", func() bool {
					taken := p.takers()
					for process, count := range before {
						if taken[process] <= count {
							return false
						}
					}
					return len(before) >= len(p.rig.Planes)
				})
			}
		}
		late, rotated := &door{}, &door{}
		late.trust(first)
		rotated.trust(first, second)
		trust := func(a *authority.Authority) Step { return func(*Play) { rotated.trust(a) } }
		// Each check and each request shows the certificate.
		cluster := static("$0, $1", with("timeout", "reuse_connection: false, timeout"), noPanic, "max_requests_per_connection: 1",
			"transport_socket: "+strings.Replace(tlsSocket, "common_tls_context: {", "common_tls_context: {tls_certificate_sds_secret_configs: [{name: $name, sds_config: "+way.source+"}], ", 1))
		name := "a client certificate of a " + way.name
		cases = append(cases, Case{
			Name: name + " comes late", Cluster: cluster, Upstream: late.upstreams(), Want: way.want, On: way.on, Warn: way.warn,
			Steps: append([]Step{Down(0, 1), Send(10), give(first), Up(0, 1)}, failingTwo...),
		}, Case{
			Name: name + " is rotated", Cluster: cluster, Upstream: rotated.upstreams(), Want: way.want, On: way.on, Warn: way.warn,
			Steps: append([]Step{
				give(first), Up(0, 1), Ready(), Send(20), During(20, rotate(second)), trust(second), Send(20),
				trust(third), Down(0, 1), Send(10), give(third), Up(0, 1),
			}, failingTwo...),
		})
	}
	for i := range cases { // Envoy takes no file that is not there
		replace(t, filepath.Join(rig.dir, strings.ReplaceAll(cases[i].Name, " ", "-")+"-secret.yaml"), "resources: []")
	}
	t.Run("case", func(t *testing.T) { rig.Run(t, cases) })
}
