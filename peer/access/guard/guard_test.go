package guard_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/access"
	"hdsd/peer/access/guard"
)

func policy(t testing.TB, mode configv1.Access_Mode, grants ...*configv1.Grant) *access.Policy {
	t.Helper()
	p, problems := access.Compile(&configv1.Access{Mode: mode, Grants: grants})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

func toToken(token string, roles ...access.Role) *configv1.Grant {
	hash := sha256.Sum256([]byte(token))
	return &configv1.Grant{Roles: roles, TokenSha256: hex.EncodeToString(hash[:])}
}

func newGuard(p *access.Policy) (*guard.Guard, *prometheus.Registry, *strings.Builder) {
	registry, log := prometheus.NewRegistry(), &strings.Builder{}
	return guard.New(guard.Options{Policy: p, Log: zerolog.New(zerolog.SyncWriter(log)), Registerer: registry}), registry, log
}

func ask(handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
	for _, header := range headers {
		r.Header.Add("Authorization", header)
	}
	handler.ServeHTTP(w, r)
	return w
}

func TestHTTP(t *testing.T) {
	g, registry, log := newGuard(policy(t, configv1.Access_ENFORCE, toToken("secret", access.Viewer)))
	who := ""
	handler := g.Handler(false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = peer.OfRequest(r).Identity }))
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/v1/endpoints", []string{"Bearer secret"}, 200},
		{"GET", "/v1/endpoints", []string{"BEARER  secret "}, 200},
		{"HEAD", "/v1/freeze", []string{"Bearer secret"}, 200},
		{"POST", "/v1/freeze", []string{"Bearer secret"}, 403},
		{"PROPFIND", "/v1/freeze", []string{"Bearer secret"}, 403},
		{"GET", "/v1/endpoints/", []string{"Bearer secret"}, 403},
		{"GET", "/v1/endpoints", nil, 401},
		{"GET", "/v1/endpoints", []string{"secret"}, 401},
		{"GET", "/v1/endpoints", []string{"Basic secret"}, 401},
		{"GET", "/v1/endpoints", []string{"Bearer"}, 401},
		{"GET", "/v1/endpoints", []string{"Bearer secret", "Bearer secret"}, 401},
		{"GET", "/v1/endpoints", []string{"Bearer wrong", "Bearer secret"}, 401},
		{"GET", "/healthz", nil, 200},
		{"GET", "/readyz", []string{"Bearer wrong"}, 200},
	} {
		who = "nobody was let in"
		w := ask(handler, c.method, c.path, c.headers...)
		if w.Code != c.want || (who == "nobody was let in") != (c.want != 200) {
			t.Errorf("%s %s %q: %d %s, want %d; let in: %s", c.method, c.path, c.headers, w.Code, w.Body, c.want, who)
		}
		if c.want == 200 && strings.HasPrefix(c.path, "/v1") && !strings.HasPrefix(who, "token:") {
			t.Errorf("%s %s: the caller is %q", c.method, c.path, who)
		}
		if got := w.Header().Get("WWW-Authenticate"); (got == "Bearer") != (c.want == 401) {
			t.Errorf("%s %s: %q", c.method, c.path, got)
		}
	}
	if n := strings.Count(log.String(), `"event":"access_denied"`); n != 9 {
		t.Errorf("%d denials are logged: %s", n, log)
	}
	if n, err := testutil.GatherAndCount(registry, "hdsd_access_denied_total"); n != 10 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
	if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "wrong") {
		t.Errorf("tokens are logged: %s", log)
	}
}

// TestReloadsEndRequests that are open while the policy changes, whenever they began.
func TestReloadsEndRequests(t *testing.T) {
	granted := policy(t, configv1.Access_ENFORCE, toToken("secret", access.Viewer))
	other := policy(t, configv1.Access_ENFORCE, toToken("secret", access.Viewer), toToken("x", access.Viewer))
	none := policy(t, configv1.Access_ENFORCE, toToken("else", access.Viewer))
	g, _, _ := newGuard(granted)
	begun := make(chan struct{}, 100)
	ended := make(chan error, 100)
	handler := g.Handler(false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}))
	var open sync.WaitGroup
	refused := make(chan int, 100)
	start := func() {
		open.Go(func() {
			if w := ask(handler, "GET", "/v1/watch", "Bearer secret"); w.Code != 200 {
				refused <- w.Code
			}
		})
	}
	start()
	<-begun
	g.SetPolicy(other)
	select {
	case err := <-ended:
		t.Fatalf("ended by a reload that leaves its grant: %v", err)
	default:
	}
	for range 50 {
		start()
	}
	g.SetPolicy(none) // while they begin
	open.Wait()       // every one ends, or was refused
	close(ended)
	for err := range ended {
		if denied := (*access.Denied)(nil); !errors.As(err, &denied) || status.Code(denied) != codes.Unauthenticated {
			t.Errorf("ended by %v", err)
		}
	}
	if w := ask(handler, "GET", "/v1/watch", "Bearer secret"); w.Code != 401 {
		t.Errorf("a withdrawn token: %d", w.Code)
	}
}

// TestReloadsWhileRequestsBegin is for the race detector.
func TestReloadsWhileRequestsBegin(t *testing.T) {
	granted := policy(t, configv1.Access_ENFORCE, toToken("secret", access.Viewer))
	none := policy(t, configv1.Access_ENFORCE, toToken("else", access.Viewer))
	g, _, _ := newGuard(granted)
	handler := g.Handler(false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	var open sync.WaitGroup
	for range 100 {
		open.Go(func() { ask(handler, "GET", "/v1/watch", "Bearer secret") })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		open.Wait()
	}()
	for {
		g.SetPolicy(granted)
		g.SetPolicy(none)
		select {
		case <-ended:
			return
		default:
		}
	}
}

func TestPermits(t *testing.T) {
	bound := func(mode configv1.Access_Mode) *access.Policy {
		return policy(t, mode, &configv1.Grant{Roles: []access.Role{access.Checker}, San: "spiffe://prod/{zone}/{node.id}"})
	}
	g, _, _ := newGuard(bound(configv1.Access_ENFORCE))
	spiffe, err := url.Parse("spiffe://prod/z1/a")
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{URIs: []*url.URL{spiffe}}
	var permit access.Permit
	handler := g.Handler(true, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { permit = access.FromContext(r.Context()) }))
	r := httptest.NewRequest("POST", "/v3/discovery:health_check", nil)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	mine, others := access.Node{ID: "a", Zone: "z1"}, access.Node{ID: "b", Zone: "z1"}
	if err := permit.Admit(mine); err != nil || !permit.Owns(mine) || permit.Owns(others) {
		t.Errorf("its own node: %v", err)
	}
	if err := permit.Admit(others); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another's node: %v", err)
	}
	g.SetPolicy(bound(configv1.Access_WARN))
	if err := permit.Admit(others); err != nil {
		t.Errorf("another's node, in mode WARN: %v", err)
	}
	g.SetPolicy(policy(t, configv1.Access_ENFORCE, toToken("x", access.Checker)))
	if err := permit.Admit(mine); err == nil || permit.Owns(mine) {
		t.Errorf("without its grant: %v", err)
	}
	if everything := access.FromContext(context.Background()); everything.Admit(others) != nil || everything.Owns(mine) {
		t.Error("where nobody guards, not everything is permitted")
	}
}

// BenchmarkGuard is what a request costs more with a guard: judged by certificate.
func BenchmarkGuard(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	spiffe, err := url.Parse("spiffe://prod/team-0/z1/a")
	if err != nil {
		b.Fatal(err)
	}
	run := func(handler http.Handler) func(b *testing.B) {
		return func(b *testing.B) {
			r, w := httptest.NewRequest("GET", "/v1/endpoints", nil), httptest.NewRecorder()
			r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{URIs: []*url.URL{spiffe}}}}}
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, r)
			}
			if w.Code != 200 {
				b.Fatal(w.Body)
			}
		}
	}
	b.Run("none", run(next))
	absent, _ := access.Compile(nil)
	g, _, _ := newGuard(absent)
	b.Run("no access", run(g.Handler(true, next)))
	for _, n := range []int{1, 100} {
		many := make([]*configv1.Grant, n)
		for i := range many {
			many[i] = &configv1.Grant{Roles: []access.Role{access.Viewer}, San: fmt.Sprintf("spiffe://prod/team-%d/{zone}/{node.id}", n-1-i)}
		}
		g, _, _ := newGuard(policy(b, configv1.Access_ENFORCE, many...))
		b.Run(fmt.Sprintf("%d grants", n), run(g.Handler(true, next)))
	}
}

// FuzzAuthorization holds that only the token that is granted lets in, however a header
// is written.
func FuzzAuthorization(f *testing.F) {
	f.Add("Bearer secret", "")
	f.Add("bearer  secret", "Bearer x")
	f.Add("Basic secret", "a.b.c")
	f.Add("Bearer e30.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUuY29tIn0.x", "")
	f.Fuzz(func(t *testing.T, first, second string) {
		g, _, _ := newGuard(policy(t, configv1.Access_ENFORCE, toToken("secret", access.Viewer)))
		headers := []string{first}
		if second != "" {
			headers = append(headers, second)
		}
		w := ask(g.Handler(false, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), "GET", "/v1/endpoints", headers...)
		scheme, token, _ := strings.Cut(first, " ")
		if good := len(headers) == 1 && strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) == "secret"; (w.Code == 200) != good {
			t.Errorf("%q is answered with %d", headers, w.Code)
		}
	})
}
