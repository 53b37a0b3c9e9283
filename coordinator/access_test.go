package coordinator_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// underMutualTLS is quick under mutual TLS.
var underMutualTLS = strings.ReplaceAll(quick, `"127.0.0.1:0"`, `"127.0.0.1:0", tls: {certificate_chain_file: server.pem, private_key_file: server.key, client_ca_file: ca.pem}`)

const someGrants = `
access:
  grants:
  - {roles: [CHECKER], san: "spiffe://prod/checker/{zone}/{node.id}"}
  - {roles: [CHECKER], san: "*.loose.internal"}
  - {roles: [DATA_PLANE], san: "{node.id}.envoy.internal"}
  - {roles: [VIEWER], san: "ann.internal"}
  - {roles: [OPERATOR], token_sha256: "SECRET"}
  - {roles: [ADMIN], san: "boss.internal"}
`

func withGrants(text string) string {
	hash := sha256.Sum256([]byte("secret"))
	return underMutualTLS + strings.ReplaceAll(text, "SECRET", hex.EncodeToString(hash[:]))
}

// as is a connection that shows a certificate of these names.
func (s *site) as(ca *authority, names ...string) *grpc.ClientConn {
	return s.dial(grpc.WithTransportCredentials(credentials.NewTLS(ca.named(names...))))
}

// tell makes an HTTP request with a certificate of these names.
func (s *site) tell(trusted *tls.Config, method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}, Timeout: patience}
	r, err := http.NewRequestWithContext(s.t.Context(), method, "https://"+s.HTTPAddress()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// served waits until somebody with such a certificate is answered.
func (s *site) served(ca *authority) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.client(true), DisableKeepAlives: true}, Timeout: patience}
	s.eventually("readiness", func() bool {
		answer, err := client.Get("https://" + s.HTTPAddress() + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func node(id, zone string) *corev3.Node {
	return &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}}
}

func hello(id, zone string) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	return &healthv3.HealthCheckRequestOrEndpointHealthResponse{
		RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_HealthCheckRequest{HealthCheckRequest: &healthv3.HealthCheckRequest{
			Node: node(id, zone), Capability: &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP}},
		}},
	}
}

// joins opens a stream as a checker, and gives what its first specifier or error is.
func joins(t *testing.T, c *grpc.ClientConn, id, zone string) (healthv3.HealthDiscoveryService_StreamHealthCheckClient, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := healthv3.NewHealthDiscoveryServiceClient(c).StreamHealthCheck(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(hello(id, zone)) // Recv tells of what fails
	_, err = stream.Recv()
	return stream, err
}

func subscribes(t *testing.T, c *grpc.ClientConn, id string) (discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: node(id, ""), TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"})
	_, err = stream.Recv()
	return stream, err
}

// TestDataPlaneIsDenied covers the certificate of a data plane: it does not allow freezes, overrides and
// backups, and not to be a checker.
func TestDataPlaneIsDenied(t *testing.T) {
	t.Parallel()
	for name, access := range map[string]string{"with grants": someGrants, "by default": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ca := newAuthority(t, dir)
			s := newSite(t, dir, withGrants(access), static("web", "127.0.0.1:1"))
			s.served(ca)
			plane := s.as(ca, "a.envoy.internal")
			if _, err := subscribes(t, plane, "a"); err != nil {
				t.Fatalf("a data plane: %v", err)
			}
			holdChanges(t, plane, codes.PermissionDenied, "OPERATOR")
			if _, err := joins(t, plane, "made-up", ""); (status.Code(err) == codes.PermissionDenied) != (access != "") {
				t.Errorf("a data plane as a checker: %v", err)
			}
			for path, role := range map[string]string{"/v1/freeze": "OPERATOR", "/v1/overrides": "OPERATOR", "/v1/trust": "OPERATOR", "/v1/clock": "OPERATOR", "/v1/nothing": "ADMIN"} {
				if code, text := s.tell(ca.named("a.envoy.internal"), "POST", path, `{"reason": "x"}`); code != 403 || !strings.Contains(text, "needs role "+role) {
					t.Errorf("POST %s: %d %s", path, code, text)
				}
			}
			if code, text := s.tell(ca.named("a.envoy.internal"), "GET", "/v1/endpoints", ""); (code == 403) != (access != "") {
				t.Errorf("GET /v1/endpoints: %d %s", code, text)
			}
			if code, text := s.tell(ca.named("nobody"), "GET", "/healthz", ""); code != 200 {
				t.Errorf("GET /healthz: %d %s", code, text)
			}
		})
	}
}

// holdChanges tries what operators and admins may.
func holdChanges(t *testing.T, c *grpc.ClientConn, want codes.Code, role string) {
	t.Helper()
	control, ctx := hdsdv1.NewControlClient(c), t.Context()
	_, freezing := control.Freeze(ctx, &hdsdv1.FreezeRequest{Reason: "x"})
	_, overriding := control.SetOverride(ctx, &hdsdv1.SetOverrideRequest{Cluster: "web", Health: corev3.HealthStatus_DRAINING, Reason: "x"})
	_, trusting := control.SetTrust(ctx, &hdsdv1.SetTrustRequest{Checker: "a", Reason: "x"})
	for what, err := range map[string]error{"freeze": freezing, "override": overriding, "trust": trusting} {
		if status.Code(err) != want || !strings.Contains(err.Error(), role) {
			t.Errorf("%s: %v, want %v with %q", what, err, want, role)
		}
	}
	copying, err := control.Backup(ctx, &hdsdv1.BackupRequest{})
	if err == nil {
		_, err = copying.Recv()
	}
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "ADMIN") {
		t.Errorf("backup: %v", err)
	}
}

// TestCheckerIsDenied covers the certificate of a checker: it does not allow to drain endpoints, and not to
// be another checker.
func TestCheckerIsDenied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	own := s.as(ca, "spiffe://prod/checker/z1/a")
	holdChanges(t, own, codes.PermissionDenied, "OPERATOR")
	for what, as := range map[string]struct{ id, zone string }{"another's id": {"b", "z1"}, "another zone": {"a", "z2"}, "no zone": {"a", ""}} {
		if _, err := joins(t, own, as.id, as.zone); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "binds it to") {
			t.Errorf("a stream as %s: %v", what, err)
		}
		if _, err := healthv3.NewHealthDiscoveryServiceClient(own).FetchHealthCheck(t.Context(), hello(as.id, as.zone)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a fetch as %s: %v", what, err)
		}
		body := `{"healthCheckRequest": {"node": {"id": "` + as.id + `", "locality": {"zone": "` + as.zone + `"}}, "capability": {"healthCheckProtocols": ["HTTP"]}}}`
		if code, text := s.tell(ca.named("spiffe://prod/checker/z1/a"), "POST", "/v3/discovery:health_check", body); code != 403 {
			t.Errorf("REST as %s: %d %s", what, code, text)
		}
	}
	if _, err := subscribes(t, own, "a"); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "DATA_PLANE") {
		t.Errorf("as a data plane: %v", err)
	}
	if _, err := subscribes(t, s.as(ca, "a.envoy.internal"), "b"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a data plane as another: %v", err)
	}
	fetch := func(id string) (int, string) {
		return s.tell(ca.named("a.envoy.internal"), "POST", "/v3/discovery:clusters", `{"node": {"id": "`+id+`"}}`)
	}
	if code, text := fetch("b"); code != 403 {
		t.Errorf("a data plane fetches as another: %d %s", code, text)
	}
	if code, text := fetch("a"); code != 200 {
		t.Errorf("a data plane fetches: %d %s", code, text)
	}
	if _, err := joins(t, own, "a", "z1"); err != nil {
		t.Errorf("as itself: %v", err)
	}
	// A report over REST goes to whose id the header says: only the owner's.
	report := `{"endpointHealthResponse": {}}`
	if code, text := s.tell(ca.named("spiffe://prod/checker/z1/b"), "POST", "/v3/discovery:health_check", report, "x-hdsd-node-id: a"); code < 400 {
		t.Errorf("another's report: %d %s", code, text)
	}
}

// TestTokens covers roles of bearer tokens by their hash, over gRPC and HTTP.
func TestTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	anybody := hdsdv1.NewControlClient(s.as(ca, "anybody"))
	for token, want := range map[string]codes.Code{"Bearer secret": codes.OK, "bearer secret": codes.OK, "Bearer wrong": codes.Unauthenticated, "secret": codes.Unauthenticated, "": codes.PermissionDenied} {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
		}
		if _, err := anybody.Freeze(ctx, &hdsdv1.FreezeRequest{Reason: "x"}); status.Code(err) != want || err != nil && !strings.Contains(err.Error(), "OPERATOR") {
			t.Errorf("%q: %v, want %v", token, err, want)
		}
		status := map[codes.Code]int{codes.OK: 200, codes.Unauthenticated: 401, codes.PermissionDenied: 403}[want]
		var headers []string
		if token != "" {
			headers = []string{"Authorization: " + token}
		}
		if code, text := s.tell(ca.named("anybody"), "POST", "/v1/freeze", `{"reason": "x"}`, headers...); code != status {
			t.Errorf("%q: %d %s, want %d", token, code, text, status)
		}
	}
}

// TestAdmins covers that admins may do everything, and that the audit has the identity of the caller: that of
// the token, if there is one.
func TestAdmins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	boss := s.as(ca, "boss.internal")
	if _, err := joins(t, boss, "any", "z7"); err != nil {
		t.Errorf("as a checker: %v", err)
	}
	if _, err := subscribes(t, boss, "any"); err != nil {
		t.Errorf("as a data plane: %v", err)
	}
	copying, err := hdsdv1.NewControlClient(boss).Backup(t.Context(), &hdsdv1.BackupRequest{})
	if err == nil {
		_, err = copying.Recv()
	}
	if err != nil {
		t.Errorf("a backup: %v", err)
	}
	askHealth(t, boss)
	askChannelz(t, boss, s.GRPCAddress())
	for name, headers := range map[string][]string{"boss.internal": nil, "nobody.internal": {"Authorization: Bearer secret"}} {
		if code, text := s.tell(ca.named(name), "POST", "/v1/freeze", `{"reason": "x", "author": "somebody else"}`, headers...); code != 200 {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	_, text := s.tell(ca.named("boss.internal"), "GET", "/v1/audit", "")
	text = strings.ReplaceAll(text, " ", "")
	for _, want := range []string{`"identity":"boss.internal"`, `"identity":"token:2bb80d537b1da3e3"`, `"author":"boss.internal","action":"Backup"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the audit lacks %s: %s", want, text)
		}
	}
}

// TestOwnerRegainsID covers the owner of an id that another checker took soon after the owner left.
func TestOwnerRegainsID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	other, err := joins(t, s.as(ca, "x.loose.internal"), "a", "z1")
	if err != nil {
		t.Fatal(err)
	}
	reporting, stop := make(chan struct{}), make(chan struct{})
	go func() { // it never falls silent
		defer close(reporting)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		report := &healthv3.HealthCheckRequestOrEndpointHealthResponse{RequestType: &healthv3.HealthCheckRequestOrEndpointHealthResponse_EndpointHealthResponse{}}
		for other.Send(report) == nil {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	defer func() { close(stop); <-reporting }()
	owner := s.as(ca, "spiffe://prod/checker/z1/a")
	if _, err := joins(t, owner, "a", "z1"); err != nil {
		t.Fatalf("the owner: %v", err)
	}
	for {
		if _, err = other.Recv(); err != nil {
			break
		}
	}
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "by a grant") {
		t.Errorf("the other is told %v", err)
	}
	if _, err := joins(t, s.as(ca, "x.loose.internal"), "b", "z1"); err != nil {
		t.Errorf("the other under another id: %v", err)
	}
	fetches := func(name string) error {
		_, err := healthv3.NewHealthDiscoveryServiceClient(s.as(ca, name)).FetchHealthCheck(t.Context(), hello("f", "z1"))
		return err
	}
	if err := fetches("x.loose.internal"); err != nil {
		t.Fatal(err)
	}
	// A fetch keeps the id for a few report intervals, which may pass on a busy machine.
	s.eventually("a fetch of one that does not own the id to be refused", func() bool {
		if err := fetches("spiffe://prod/checker/z1/f"); err != nil {
			t.Fatalf("a fetch of the owner: %v", err)
		}
		return status.Code(fetches("x.loose.internal")) == codes.AlreadyExists
	})
}

// TestWithdrawnAuthorityEndsStreams covers streams over gRPC and HTTP. The streams of other callers stay.
func TestWithdrawnAuthorityEndsStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(someGrants), static("web", "127.0.0.1:1"))
	s.served(ca)
	checker, err := joins(t, s.as(ca, "spiffe://prod/checker/z1/a"), "a", "z1")
	if err != nil {
		t.Fatal(err)
	}
	loose, err := joins(t, s.as(ca, "x.loose.internal"), "b", "z9")
	if err != nil {
		t.Fatal(err)
	}
	plane, err := subscribes(t, s.as(ca, "a.envoy.internal"), "a")
	if err != nil {
		t.Fatal(err)
	}
	watch, err := hdsdv1.NewQueryClient(s.as(ca, "ann.internal")).Watch(t.Context(), &hdsdv1.WatchRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.named("ann.internal"), DisableKeepAlives: true}}
	events, err := client.Get("https://" + s.HTTPAddress() + "/v1/watch")
	if err != nil || events.StatusCode != 200 {
		t.Fatal(events, err)
	}
	defer events.Body.Close()

	// Only the first checker keeps what it has; the second may be in zone z1 only.
	fewer := `
access:
  grants:
  - {roles: [CHECKER], san: "spiffe://prod/checker/{zone}/{node.id}"}
  - {roles: [CHECKER], san: "x.loose.internal", token_sha256: "SECRET"}
`
	restart, err := s.Reload(configuration(t, dir, withGrants(fewer), static("web", "127.0.0.1:1")))
	if err != nil || len(restart) > 0 {
		t.Fatal(restart, err)
	}
	for what, receive := range map[string]func() error{
		"the checker without a token": func() error { _, err := loose.Recv(); return err },
		"the data plane":              func() error { _, err := plane.Recv(); return err },
		"the watch":                   func() error { _, err := watch.Recv(); return err },
	} {
		err := error(nil)
		for err == nil {
			err = receive()
		}
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "needs role") {
			t.Errorf("%s ends with %v", what, err)
		}
	}
	if _, err := io.Copy(io.Discard, events.Body); err != nil {
		t.Errorf("the watch over HTTP: %v", err)
	}
	if _, err := s.Reload(configuration(t, dir, withGrants(fewer), static("web", "127.0.0.1:1")+static("more", "127.0.0.1:1"))); err != nil {
		t.Fatal(err)
	}
	if spec, err := checker.Recv(); err != nil || len(spec.GetClusterHealthChecks()) == 0 {
		t.Errorf("the checker that keeps its grant gets %v, %v", spec, err)
	}
}

// TestWarnModeAllows covers that warn mode allows every call, and logs the calls that it would deny.
func TestWarnModeAllows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(strings.Replace(someGrants, "access:\n", "access:\n  mode: WARN\n", 1)), static("web", "127.0.0.1:1"))
	s.served(ca)
	if code, text := s.tell(ca.named("nobody"), "POST", "/v1/freeze", `{"reason": "x"}`); code != 200 {
		t.Errorf("a freeze by nobody: %d %s", code, text)
	}
	if _, err := joins(t, s.as(ca, "spiffe://prod/checker/z1/a"), "b", "z7"); err != nil {
		t.Errorf("a checker as another: %v", err)
	}
	_, text := s.tell(ca.named("nobody"), "GET", "/metrics", "")
	for _, want := range []string{
		`hdsd_access_denied_total{mode="WARN",role="OPERATOR"} 1`, `hdsd_access_denied_total{mode="WARN",role="CHECKER"} 1`,
	} {
		if !bytes.Contains([]byte(text), []byte(want)) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
