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

	"hdsd/access"
)

const (
	issuerPatience = 5 * time.Second // for an answer of an issuer
	issuerPause    = 5 * time.Second // between two attempts at one that did not answer
	renewalPause   = time.Minute     // the same, where hdsd knows what it published before
)

// issuers verify OIDC tokens. An issuer is asked when its first token comes, and when the first one
// comes after a reload. Its keys are kept, and asked for again while they are used, and when a token
// names another.
type issuers struct {
	mu sync.Mutex
	of map[string]*issuer
}

// issuer is one that grants name.
type issuer struct {
	url    string
	client *http.Client
	turn   chan struct{} // holds one while somebody asks for its configuration

	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil: not known yet
	renews   atomic.Bool                          // the verifier may be of a configuration that has changed

	// Owned by who has the turn.
	failed error
	retry  time.Time
}

// claims verifies a token, if one of these issuers may have made it. It returns nil for
// other tokens.
func (i *issuers) claims(ctx context.Context, known []string, token string) (*access.Claims, error) {
	if name := issuerIn(token); slices.Contains(known, name) {
		return i.named(name).verify(ctx, token)
	}
	return nil, nil //nolint:nilnil // it is no token of an issuer
}

// issuerIn reads who a token says has made it, which nothing has verified yet.
func issuerIn(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var says struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &says) != nil {
		return ""
	}
	return says.Issuer
}

func (i *issuers) named(name string) *issuer {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.of == nil {
		i.of = map[string]*issuer{}
	}
	if i.of[name] == nil {
		// Without idle connections nothing has to be closed.
		i.of[name] = newIssuer(name, &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment})
	}
	return i.of[name]
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

// renew has issuers asked again that are still granted something, and forgets the others.
func (i *issuers) renew(granted []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name, known := range i.of {
		if known.renews.Store(true); !slices.Contains(granted, name) {
			delete(i.of, name)
		}
	}
}

// ready gives what verifies the issuer's tokens. It asks the issuer, if nobody has yet. One that is
// to be asked again and does not answer goes on with what it published before.
func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	known := i.verifier.Load()
	if known != nil && !i.renews.Load() {
		return known, nil
	}
	select {
	case i.turn <- struct{}{}:
	default:
		if known != nil {
			return known, nil
		}
		select {
		case i.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-i.turn }()
	if known = i.verifier.Load(); known != nil && !i.renews.Load() {
		return known, nil
	}
	err := i.failed
	if now := time.Now(); !now.Before(i.retry) {
		i.renews.Store(false) // first: a reload meanwhile has it asked once more
		var found *oidc.IDTokenVerifier
		if found, err = i.discover(); err == nil {
			i.verifier.Store(found)
			return found, nil
		}
		i.renews.Store(true)
		if i.failed, i.retry = err, now.Add(issuerPause); known != nil {
			i.retry = now.Add(renewalPause)
		}
	}
	if known != nil {
		return known, nil
	}
	return nil, err
}

// discover asks the issuer where its keys are and by what it signs.
func (i *issuer) discover() (*oidc.IDTokenVerifier, error) {
	// Not the context of a call: the provider keeps it, and the next caller waits for the same answer.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.url)
	if err != nil {
		return nil, err
	}
	return verifierOf(provider, i.url, i.client)
}
