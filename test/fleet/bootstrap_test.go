package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/upstream"
)

// TestBootstrapsThatTheCommandPrints starts every Envoy with nothing but what
// hdsd bootstrap prints, over mutual TLS.
func TestBootstrapsThatTheCommandPrints(t *testing.T) {
	t.Parallel()
	ups := Upstreams(t, 3, upstream.Options{})
	c := Prepare(t, ClusterFile(StaticCluster("web", CheckHTTP, Addresses(ups))), "")
	certificate, key := c.certify()
	c.write("hdsd.yaml", fmt.Sprintf("grpc: {address: %q, tls: {certificate_chain_file: cert.pem, private_key_file: key.pem, client_ca_file: cert.pem}}\n"+
		"http: {address: %q}\nsources: [{name: local, config_source: {path_config_source: {path: clusters.yaml}}}]\n%s", c.GRPC, c.HTTP, FastReports))
	c.Start()
	connect := []string{"--server", c.GRPC, "--tls-ca", certificate, "--tls-cert", certificate, "--tls-key", key}
	start := func(id string, args ...string) *envoy.Process {
		args = append(append([]string{"bootstrap"}, args...), "--id", id, "--admin", "127.0.0.1:0")
		return envoy.Start(t, "", id, c.output(append(args, connect...)...))
	}
	for i := range 3 {
		start(fmt.Sprintf("checker-%d", i+1), "checker", "--region", "eu", "--zone", string(rune('a'+i)))
	}
	var planes []*envoy.Process
	for _, flags := range [][]string{{"--delta"}, {"--delta=false"}, {"--eds", "web"}} {
		listen := envoy.FreeAddress(t)
		plane := start(fmt.Sprintf("dp-%d", len(planes)), append([]string{"client", "--route", "web", "--listen", listen}, flags...)...)
		plane.Listen = listen
		planes = append(planes, plane)
	}
	c.AwaitAllHealthy("web", Addresses(ups), planes)
	set(t, ups[1], upstream.Status(503))
	for _, plane := range planes {
		AwaitPlane(t, plane, "web", ups[1].Addr(), "UNHEALTHY")
		if failed := Traffic(t, plane, 10); failed > 0 {
			t.Errorf("%d of 10 requests through %s failed", failed, plane.ID)
		}
	}
	if rows := c.output(append([]string{"endpoints", "web", ups[1].Addr(), "-o", "csv"}, connect...)...); !strings.Contains(string(rows), ",UNHEALTHY,") {
		t.Errorf("asked over TLS, it says %s", rows)
	}
}

// output runs one command of hdsd and gives what it prints.
func (c *Coordinator) output(args ...string) []byte {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), c.Binary, args...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("hdsd %v: %v: %s", args, err, &errors)
	}
	return out
}

// certify writes a certificate for loopback, which is its own authority, and
// gives the names of its files.
func (c *Coordinator) certify() (certificate, key string) {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		c.t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	c.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})))
	return filepath.Join(c.Dir, "cert.pem"), filepath.Join(c.Dir, "key.pem")
}
