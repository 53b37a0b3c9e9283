package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
)

const (
	keysInterval = 2 * time.Second // minimum, between two requests for an issuer's keys
	keysFresh    = 5 * time.Minute // age above which keys in use are refreshed
	maxKeysBytes = 1 << 20         // of an issuer's answer
)

// signing lists the accepted algorithms of tokens: none with a shared secret.
var signing = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

var errUnknownKey = errors.New("it is signed by none of the issuer's keys")

// keySet holds the keys of an issuer. It implements oidc.KeySet. A token with an unknown key
// waits for the next answer of the issuer, which is asked once in an interval, however many
// wait.
type keySet struct {
	url    string
	client *http.Client
	turn   chan struct{} // held during a request to the issuer
	last   atomic.Pointer[keysAnswer]
}

// keysAnswer is the result of asking an issuer for its keys.
type keysAnswer struct {
	keys      []jose.JSONWebKey
	received  time.Time // arrival of the keys
	requested time.Time // time of the last request
	err       error     // of the last request
}

func newKeySet(url string, client *http.Client) *keySet {
	k := &keySet{url: url, client: client, turn: make(chan struct{}, 1)}
	k.last.Store(&keysAnswer{})
	return k
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	came := time.Now()
	jws, err := jose.ParseSigned(token, signing)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, errors.New("it is no token with one signature")
	}
	k.refresh()
	last := k.last.Load()
	payload, hasKey := last.verify(jws)
	if !hasKey {
		if last, err = k.after(ctx, came); err != nil {
			return nil, err
		}
		payload, hasKey = last.verify(jws)
	}
	if !hasKey && last.err != nil {
		return nil, fmt.Errorf("the issuer's keys cannot be read: %w", last.err)
	}
	if payload == nil {
		return nil, errUnknownKey
	}
	return payload, nil
}

// verify returns the payload of a token, nil if no key has signed it, and reports whether its
// key is known.
func (a *keysAnswer) verify(jws *jose.JSONWebSignature) (payload []byte, hasKey bool) {
	id := jws.Signatures[0].Header.KeyID
	for i := range a.keys {
		if id != "" && a.keys[i].KeyID != id {
			continue
		}
		hasKey = id != ""
		if payload, err := jws.Verify(&a.keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, hasKey
}

// refresh asks for the keys again when they are old. It keeps them while another goroutine asks,
// and after a recent failure.
func (k *keySet) refresh() {
	last := k.last.Load()
	if last.received.IsZero() || time.Since(last.received) < keysFresh || time.Since(last.requested) < issuerPause {
		return
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
		if k.last.Load() == last {
			k.ask()
		}
	default:
	}
}

// after returns an answer from after the caller's arrival. It asks, unless another goroutine
// does, when the interval has passed.
func (k *keySet) after(ctx context.Context, came time.Time) (*keysAnswer, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-k.turn }()
	last := k.last.Load()
	if last.requested.After(came) {
		return last, nil
	}
	pause := time.NewTimer(time.Until(last.requested.Add(keysInterval)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return k.ask(), nil
}

// ask asks the issuer for its keys. After a failure, its previous answer stays. The caller has
// the turn.
func (k *keySet) ask() *keysAnswer {
	next := *k.last.Load()
	next.requested = time.Now()
	var keys []jose.JSONWebKey
	if keys, next.err = k.fetch(); next.err == nil {
		next.keys, next.received = keys, next.requested
	}
	k.last.Store(&next)
	return &next
}

// fetch does not end with the caller's context: others wait for the same answer.
func (k *keySet) fetch() ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, k.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := k.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", k.url, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxKeysBytes+1))
	if err == nil && len(body) > maxKeysBytes {
		err = fmt.Errorf("%s answers more than %d bytes", k.url, maxKeysBytes)
	}
	if err != nil {
		return nil, err
	}
	return readKeys(body)
}

// readKeys omits keys of unknown kinds, since issuers may add some.
func readKeys(body []byte) ([]jose.JSONWebKey, error) {
	var listed struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &listed); err != nil {
		return nil, fmt.Errorf("it is no list of keys: %w", err)
	}
	if listed.Keys == nil {
		return nil, errors.New("it is no list of keys")
	}
	var keys []jose.JSONWebKey // none: the issuer has withdrawn them all
	for _, text := range listed.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil && key.IsPublic() && key.Valid() && key.Use != "enc" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// verifierOf returns a verifier by the published keys and algorithms of an issuer.
func verifierOf(provider *oidc.Provider, issuer string, client *http.Client) (*oidc.IDTokenVerifier, error) {
	var published struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&published); err != nil {
		return nil, err
	}
	// Without a published algorithm, go-oidc takes RS256, as OpenID Connect demands.
	algorithms := slices.DeleteFunc(published.Algorithms, func(name string) bool {
		return !slices.Contains(signing, jose.SignatureAlgorithm(name))
	})
	// The audience is a matter of grants.
	config := &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms}
	return oidc.NewVerifier(issuer, newKeySet(published.Keys, client), config), nil
}
