package coordinator_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pki "hdsd/test/authority"
	"hdsd/test/workload"
)

const mutual = `tls: {certificate_chain_file: cert, private_key_file: key, client_ca_file: ca}`

var secureGRPC = strings.Replace(quick, `grpc: {address: "127.0.0.1:0"`, `grpc: {address: "127.0.0.1:0", `+mutual, 1)

// secured runs a coordinator with mutual TLS on both addresses or only that of gRPC.
func secured(t *testing.T, ca *pki.Authority, text string) *site {
	t.Helper()
	dir := t.TempDir()
	own := ca.Issue(t, "hdsd")
	pki.Save(t, dir, map[string]string{"cert": own.Chain, "key": own.Key, "ca": ca.PEM()})
	return newSite(t, dir, text, static("web", "127.0.0.1:1"))
}

// withTLS runs a coordinator with mutual TLS on its gRPC address.
func withTLS(t *testing.T) *site {
	t.Helper()
	s := secured(t, pki.New(t, "one"), secureGRPC)
	s.ready()
	return s
}

func trusting(ca *pki.Authority, client pki.Pair) *tls.Config {
	return &tls.Config{RootCAs: ca.Pool(), ServerName: "hdsd", MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{client.Certificate}}
}

// joins opens a checker's stream; the channel gets its end.
func (s *site) joins(id string, as *tls.Config) <-chan error {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(cancel)
	stream, err := healthv3.NewHealthDiscoveryServiceClient(s.dial(grpc.WithTransportCredentials(credentials.NewTLS(as)))).StreamHealthCheck(ctx)
	if err == nil {
		err = stream.Send(&healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{
			HealthCheckRequest: &healthv3.HealthCheckRequest{Node: &corev3.Node{Id: id}},
		}})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

func (s *site) awaitEnd(what string, ended <-chan error) {
	s.t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		s.t.Fatalf("%s goes on", what)
	}
}

// TestStreamEndsWithCertificate covers certificates that expire, and certificates that an operator withdraws.
func TestStreamEndsWithCertificate(t *testing.T) {
	t.Parallel()
	ca, other := pki.New(t, "one"), pki.New(t, "other")
	s := secured(t, ca, secureGRPC)
	s.ready()
	pki.Save(t, s.dir, map[string]string{"ca": ca.PEM() + other.PEM()})
	stays := s.joins("stays", trusting(ca, ca.Issue(t, "stays")))
	short := s.joins("short", trusting(ca, ca.Issue(t, "short", pki.Until(time.Now().Add(3*time.Second)))))
	var withdrawn <-chan error
	s.eventually("the other authority to be trusted", func() bool {
		as := trusting(ca, other.Issue(t, "withdrawn"))
		connection, err := tls.Dial("tcp", s.GRPCAddress(), &tls.Config{RootCAs: as.RootCAs, ServerName: as.ServerName, Certificates: as.Certificates, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
		if err != nil {
			return false
		}
		defer connection.Close()
		_, err = connection.Read(make([]byte, 1)) // HTTP/2 settings, or an alert
		return err == nil
	})
	withdrawn = s.joins("withdrawn", trusting(ca, other.Issue(t, "withdrawn")))
	s.awaitEnd("the stream of an expired certificate", short)
	pki.Save(t, s.dir, map[string]string{"ca": ca.PEM()})
	s.awaitEnd("the stream of an authority that was withdrawn", withdrawn)
	select {
	case err := <-stays:
		t.Errorf("the stream of a valid certificate ended: %v", err)
	default:
	}
	s.eventually("both ends to be counted", func() bool {
		return s.scrape().samples[`hdsd_connections_ended_total{listener="grpc",reason="certificate"}`] == 2
	})
}

// TestInvalidCertificateIsNotServed covers that the valid certificate stays in use.
func TestInvalidCertificateIsNotServed(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	s := secured(t, ca, secureGRPC)
	s.ready()
	left := func() float64 {
		return s.scrape().samples[`hdsd_certificate_expiry_seconds{certificate="own",listener="grpc"}`]
	}
	if seconds := left(); seconds <= 0 || seconds > 3600 {
		t.Errorf("%v seconds are left", seconds)
	}
	if s.scrape().samples[`hdsd_certificate_expiry_seconds{certificate="client_authorities",listener="grpc"}`] <= 0 {
		t.Error("the authorities have no time left")
	}
	expired, renewed := ca.Issue(t, "hdsd", pki.Until(time.Now().Add(-time.Minute))), ca.Issue(t, "hdsd", pki.Until(time.Now().Add(2*time.Hour)))
	for _, next := range []pki.Pair{expired, renewed} {
		pki.Save(t, s.dir, map[string]string{"cert": next.Chain, "key": next.Key})
		s.joins("joins", trusting(ca, ca.Issue(t, "joins")))
	}
	s.eventually("the renewed certificate", func() bool { return left() > 3700 })
}

// TestWatchEndsWithCertificate covers a watch over HTTP.
func TestWatchEndsWithCertificate(t *testing.T) {
	t.Parallel()
	ca := pki.New(t, "one")
	s := secured(t, ca, strings.ReplaceAll(quick, `"127.0.0.1:0"`, `"127.0.0.1:0", `+mutual))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: trusting(ca, ca.Issue(t, "short", pki.Until(time.Now().Add(3*time.Second)))), DisableKeepAlives: true,
	}}
	answer, err := client.Get("https://" + s.HTTPAddress() + "/v1/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	ended := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); { // until the server ends it
		}
		ended <- nil
	}()
	s.awaitEnd("the watch of an expired certificate", ended)
}

// TestOldConnectionsEnd at their maximum age, and nobody's seats move for that.
func TestOldConnectionsEnd(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	text := strings.NewReplacer(`grpc: {address: "127.0.0.1:0"}`, `grpc: {address: "127.0.0.1:0", max_connection_age: 2s}`,
		"reconnect_grace: 0.2s", "reconnect_grace: 5s, redundancy: 1",
		"interval: 0.05s", "interval: 0.3s").Replace(quick) // nobody is silent for so long on a busy machine
	s := newSite(t, t.TempDir(), text, static("web"))
	s.ready()
	for _, id := range []string{"c1", "c2", "c3"} {
		s.checker(id)
	}
	s.eventually("three checkers", func() bool { return s.scrape().samples["hdsd_checkers_connected"] == 3 })
	move(t, s.dir, "clusters.yaml", "resources:\n"+static("web", address)) // no join moves its seat
	s.eventually("a healthy endpoint", func() bool { return s.healthOf("web", address) == "HEALTHY" })
	before := s.scrape()
	ended := `hdsd_connections_ended_total{listener="grpc",reason="age"}`
	s.eventually("several ends of each connection", func() bool { return s.scrape().samples[ended] >= before.samples[ended]+6 })
	after := s.scrape()
	for _, metric := range []string{"hdsd_plan_moves_total", "hdsd_canary_lost_total", `hdsd_transitions_total{to="UNKNOWN"}`, `hdsd_transitions_total{to="UNHEALTHY"}`} {
		if before.samples[metric] != after.samples[metric] {
			t.Errorf("%s was %v and is %v", metric, before.samples[metric], after.samples[metric])
		}
	}
}

// TestSPIFFECertificates covers a rotation: a stream ends when its authority is withdrawn, and clients of the
// next authority connect.
func TestSPIFFECertificates(t *testing.T) {
	t.Parallel()
	const id = "spiffe://prod/hdsd"
	first, next := pki.New(t, "first"), pki.New(t, "next")
	api := workload.Serve(t)
	own := func(by *pki.Authority) pki.Pair { return by.Issue(t, "hdsd", pki.URI(t, id)) }
	envoy := func(by *pki.Authority) *tls.Config {
		as := trusting(by, by.Issue(t, "envoy", pki.URI(t, "spiffe://prod/envoy/c1")))
		as.RootCAs.AddCert(first.Certificate)
		return as
	}
	api.Say(workload.Said{ID: id, Pair: own(first), Bundle: []*pki.Authority{first}})
	s := newSite(t, t.TempDir(), strings.Replace(quick, `grpc: {address: "127.0.0.1:0"`,
		`grpc: {address: "127.0.0.1:0", tls: {spiffe_workload_api: {address: "`+api.Address()+`", trust_domains: [prod]}}`, 1), static("web", "127.0.0.1:1"))
	s.ready()
	before := s.joins("c1", envoy(first))
	api.Say(workload.Said{ID: id, Pair: own(first), Bundle: []*pki.Authority{next}})
	s.awaitEnd("the stream of an authority that was rotated out", before)
	s.joins("c1", envoy(next))
}
