package guard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"hdsd/peer/access"
)

const (
	issuerPatience = 5 * time.Second // for an answer of an issuer
	issuerPause    = 5 * time.Second // between two attempts at a failing issuer
	renewalPause   = time.Minute     // the same, if its previous configuration is known
)

// issuers verify OIDC tokens. An issuer is asked for its first token, and for the first one
// after a reload. Its keys are kept, and refreshed while they are used, and for a token with an
// unknown one.
type issuers struct {
	mu     sync.Mutex
	byName map[string]*issuer
}

// issuer is an issuer named by grants.
type issuer struct {
	url    string
	client *http.Client
	turn   chan struct{} // held during a request for its configuration

	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil: not known yet
	renews   atomic.Bool                          // the verifier's configuration may have changed

	// Owned by the holder of the turn.
	failed error
	retry  time.Time
}

// claims verifies a token of one of the granted issuers. It returns nil for other tokens.
func (i *issuers) claims(ctx context.Context, granted []string, token string) (*access.Claims, error) {
	if name := issuerIn(token); slices.Contains(granted, name) {
		return i.named(name).verify(ctx, token)
	}
	return nil, nil //nolint:nilnil // it is no token of an issuer
}

// issuerIn reads the claimed issuer of a token, which is not verified yet.
func issuerIn(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var unverified struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &unverified) != nil {
		return ""
	}
	return unverified.Issuer
}

func (i *issuers) named(name string) *issuer {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byName == nil {
		i.byName = map[string]*issuer{}
	}
	if i.byName[name] == nil {
		// Without idle connections nothing has to be closed.
		i.byName[name] = newIssuer(name, &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment})
	}
	return i.byName[name]
}

func newIssuer(url string, transport http.RoundTripper) *issuer {
	return &issuer{url: url, turn: make(chan struct{}, 1), client: &http.Client{Timeout: issuerPatience, Transport: transport}}
}

func (i *issuer) verify(ctx context.Context, token string) (*access.Claims, error) {
	verifier, err := i.ready(ctx)
	if err != nil {
		return nil, fmt.Errorf("its issuer %s cannot be asked: %w", i.url, err)
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("its issuer is %s, but %w", i.url, err)
	}
	claims := &access.Claims{Issuer: verified.Issuer, Subject: verified.Subject, Audiences: verified.Audience, Expires: verified.Expiry}
	if err := verified.Claims(&claims.All); err != nil {
		return nil, err
	}
	return claims, nil
}

// renew marks issuers that still have grants to be asked again, and forgets the others.
func (i *issuers) renew(granted []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, issuer := range i.byName {
		if issuer.renews.Store(true); !slices.Contains(granted, name) {
			delete(i.byName, name)
		}
	}
}

// ready returns the verifier of the issuer's tokens. It asks the issuer for its first one. If an
// issuer fails later, its previous configuration stays in use.
func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	verifier := i.verifier.Load()
	if verifier != nil && !i.renews.Load() {
		return verifier, nil
	}
	select {
	case i.turn <- struct{}{}:
	default:
		if verifier != nil {
			return verifier, nil
		}
		select {
		case i.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-i.turn }()
	if verifier = i.verifier.Load(); verifier != nil && !i.renews.Load() {
		return verifier, nil
	}
	err := i.failed
	if now := time.Now(); !now.Before(i.retry) {
		i.renews.Store(false) // first: a reload meanwhile makes it ask once more
		var found *oidc.IDTokenVerifier
		if found, err = i.discover(); err == nil {
			i.verifier.Store(found)
			return found, nil
		}
		i.renews.Store(true)
		if i.failed, i.retry = err, now.Add(issuerPause); verifier != nil {
			i.retry = now.Add(renewalPause)
		}
	}
	if verifier != nil {
		return verifier, nil
	}
	return nil, err
}

// discover asks the issuer for the place of its keys, and its algorithms.
func (i *issuer) discover() (*oidc.IDTokenVerifier, error) {
	// Not the context of a call: the provider keeps it, and the next caller waits for the same
	// answer.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.url)
	if err != nil {
		return nil, err
	}
	return verifierOf(provider, i.url, i.client)
}
