package guard_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer/access"
)

// provider is an OpenID Connect issuer on loopback.
type provider struct {
	*httptest.Server
	t     *testing.T
	key   atomic.Pointer[ecdsa.PrivateKey]
	id    atomic.Value // of the key
	asked atomic.Int32 // for keys
	path  atomic.Value // of the keys
	down  atomic.Bool
}

func newProvider(t *testing.T) *provider {
	p := &provider{t: t}
	p.path.Store("/keys")
	p.rotate("1")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + p.path.Load().(string), "authorization_endpoint": p.URL, "token_endpoint": p.URL,
			"id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	mux.HandleFunc("/{keys}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != p.path.Load() {
			http.NotFound(w, r)
			return
		}
		p.asked.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: p.key.Load().Public(), KeyID: p.id.Load().(string), Algorithm: "ES256", Use: "sig"},
		}})
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// rotate gives the issuer a new key.
func (p *provider) rotate(id string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.key.Store(key)
	p.id.Store(id)
	return key
}

// token signs claims, by the issuer's key unless there is another.
func (p *provider) token(claims map[string]any, other ...*ecdsa.PrivateKey) string {
	p.t.Helper()
	key := p.key.Load()
	if len(other) > 0 {
		key = other[0]
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: p.id.Load().(string)}}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[string]any{"iss": p.URL, "aud": "hdsd", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"dev", "sre"}}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *provider) grant(claim, value string, roles ...access.Role) *configv1.Grant {
	return &configv1.Grant{Roles: roles, Oidc: &configv1.Oidc{Issuer: p.URL, Audience: "hdsd", Claim: claim, Value: value}}
}

func nothing(http.ResponseWriter, *http.Request) {}

func TestOIDC(t *testing.T) {
	p, stranger := newProvider(t), newProvider(t)
	g, _, log := newGuard(policy(t, configv1.Access_ENFORCE,
		p.grant("groups", "sre", access.Viewer), p.grant("email", "ann@example.com", access.Operator), p.grant("realm.roles", "boss", access.Admin)))
	handler := g.Handler(false, http.HandlerFunc(nothing))
	none := map[string]any{"groups": "none"}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{}
		maps.Copy(all, none)
		maps.Copy(all, more)
		return all
	}
	unsigned := strings.Split(p.token(nil), ".")
	for what, c := range map[string]struct {
		token  string
		method string
		want   int
	}{
		"a group":                  {p.token(nil), "GET", 200},
		"a single group":           {p.token(map[string]any{"groups": "sre"}), "GET", 200},
		"lacks the role":           {p.token(nil), "POST", 403},
		"no group":                 {p.token(none), "GET", 403},
		"part of a group":          {p.token(map[string]any{"groups": "sre2 sre"}), "GET", 403},
		"an address":               {p.token(with(map[string]any{"email": "ann@example.com", "email_verified": true})), "POST", 200},
		"an address not verified":  {p.token(with(map[string]any{"email": "ann@example.com", "email_verified": false})), "POST", 403},
		"an address, nothing said": {p.token(with(map[string]any{"email": "ann@example.com"})), "POST", 403},
		"a path":                   {p.token(with(map[string]any{"realm": map[string]any{"roles": []string{"boss"}}})), "POST", 200},
		"another audience":         {p.token(map[string]any{"aud": "other"}), "GET", 403},
		"one of several audiences": {p.token(map[string]any{"aud": []string{"other", "hdsd"}}), "GET", 200},
		"expired":                  {p.token(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), "GET", 401},
		"not valid yet":            {p.token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), "GET", 401},
		"another issuer":           {stranger.token(nil), "GET", 401},
		"another issuer's key":     {p.token(nil, stranger.key.Load()), "GET", 401},
		"another issuer's name":    {stranger.token(map[string]any{"iss": p.URL}), "GET", 401},
		"no signature":             {unsigned[0] + "." + unsigned[1] + ".", "GET", 401},
		"the algorithm none":       {"eyJhbGciOiJub25lIn0." + unsigned[1] + ".", "GET", 401},
		"no token of OIDC":         {"x.y.z", "GET", 401},
	} {
		if w := ask(handler, c.method, "/v1/freeze", "Bearer "+c.token); w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", what, w.Code, w.Body, c.want)
		}
	}
	if strings.Contains(log.String(), unsigned[2]) {
		t.Error("a token is logged")
	}
	if n := stranger.asked.Load(); n != 0 {
		t.Errorf("an issuer that no grant names was asked %d times", n)
	}
}

// TestKeysAreCached, and asked for again for a new key, but not for a forged signature.
func TestKeysAreCached(t *testing.T) {
	p := newProvider(t)
	g, _, _ := newGuard(policy(t, configv1.Access_ENFORCE, p.grant("groups", "sre", access.Viewer)))
	handler := g.Handler(false, http.HandlerFunc(nothing))
	for range 20 {
		if w := ask(handler, "GET", "/v1/endpoints", "Bearer "+p.token(nil)); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("asked %d times for the keys of 20 calls", n)
	}
	old := p.token(nil)
	p.rotate("2")
	for what, token := range map[string]string{"the new key": p.token(nil)} {
		if w := ask(handler, "GET", "/v1/endpoints", "Bearer "+token); w.Code != 200 {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	if w := ask(handler, "GET", "/v1/endpoints", "Bearer "+old); w.Code != 401 {
		t.Errorf("the old key: %d", w.Code)
	}
	other := newProvider(t).key.Load()
	before := p.asked.Load()
	for range 50 {
		ask(handler, "GET", "/v1/endpoints", "Bearer "+p.token(nil, other))
	}
	if n := p.asked.Load() - before; n != 0 {
		t.Errorf("for 50 tokens that forge the new key, the issuer was asked for keys %d times", n)
	}
	if w := ask(handler, "GET", "/v1/endpoints", "Bearer "+p.token(nil)); w.Code != 200 {
		t.Errorf("a good token after them: %d %s", w.Code, w.Body)
	}
}

// TestAnIssuerThatIsDown denies its tokens, and nothing else.
func TestAnIssuerThatIsDown(t *testing.T) {
	p := newProvider(t)
	p.down.Store(true)
	g, _, _ := newGuard(policy(t, configv1.Access_ENFORCE, p.grant("groups", "sre", access.Viewer), toToken("secret", access.Viewer)))
	handler := g.Handler(false, http.HandlerFunc(nothing))
	if w := ask(handler, "GET", "/v1/endpoints", "Bearer "+p.token(nil)); w.Code != 401 || !strings.Contains(w.Body.String(), "cannot be asked") {
		t.Errorf("its token: %d %s", w.Code, w.Body)
	}
	if w := ask(handler, "GET", "/v1/endpoints", "Bearer secret"); w.Code != 200 {
		t.Errorf("another token: %d %s", w.Code, w.Body)
	}
}

// TestAReloadAsksIssuersAnew where their keys are. One that is down then goes on with what hdsd
// knows of it.
func TestAReloadAsksIssuersAnew(t *testing.T) {
	p := newProvider(t)
	granted := policy(t, configv1.Access_ENFORCE, p.grant("groups", "sre", access.Viewer))
	g, _, _ := newGuard(granted)
	handler := g.Handler(false, http.HandlerFunc(nothing))
	want := func(what string, code int) {
		t.Helper()
		if got := ask(handler, http.MethodGet, "/v1/clusters", "Bearer "+p.token(nil)).Code; got != code {
			t.Errorf("%s: %d, want %d", what, got, code)
		}
	}
	want("at first", http.StatusOK)
	p.path.Store("/keys-2")
	p.rotate("2")
	want("a key that is elsewhere", http.StatusUnauthorized)
	g.SetPolicy(granted)
	want("after a reload", http.StatusOK)
	p.down.Store(true)
	g.SetPolicy(granted)
	want("after a reload while the issuer is down", http.StatusOK)
	want("and again", http.StatusOK)
}

// TestATokenThatExpiresEndsItsCalls that are open then.
func TestATokenThatExpiresEndsItsCalls(t *testing.T) {
	p := newProvider(t)
	g, _, _ := newGuard(policy(t, configv1.Access_ENFORCE, p.grant("groups", "sre", access.Viewer)))
	handler := g.Handler(false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	token := p.token(map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()})
	ask(handler, "GET", "/v1/watch", "Bearer "+token) // returns when its context ends
	if w := ask(handler, "GET", "/v1/watch", "Bearer "+token); w.Code != 401 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// TestATokenThatExpiredEndsItsCallsOnceThatCounts: in mode WARN it ended none.
func TestATokenThatExpiredEndsItsCallsOnceThatCounts(t *testing.T) {
	p := newProvider(t)
	grant := p.grant("groups", "sre", access.Viewer)
	g, metrics, _ := newGuard(policy(t, configv1.Access_WARN, grant))
	begun, over := make(chan struct{}), make(chan struct{})
	handler := g.Handler(false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-over
		if r.Context().Err() == nil {
			t.Error("the call goes on")
		}
	}))
	var open sync.WaitGroup
	defer open.Wait()
	open.Go(func() {
		ask(handler, "GET", "/v1/watch", "Bearer "+p.token(map[string]any{"exp": time.Now().Add(time.Second).Unix()}))
	})
	<-begun
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for denied := 0; denied == 0; <-look.C { // until it expires
		all, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			for _, m := range family.GetMetric() {
				denied += int(m.GetCounter().GetValue())
			}
		}
	}
	g.SetPolicy(policy(t, configv1.Access_ENFORCE, grant))
	close(over) // the policy has ended it already
}
