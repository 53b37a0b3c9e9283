package guard

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// mint is an issuer without a network. It implements http.RoundTripper.
type mint struct {
	t *testing.T

	mu    sync.Mutex
	keys  map[string]*ecdsa.PrivateKey // that it publishes, by id
	asked int                          // for keys
	down  bool
}

const mintURL = "https://id.example.com"

func newMint(t *testing.T) *mint { return &mint{t: t, keys: map[string]*ecdsa.PrivateKey{}} }

// RoundTrip implements http.RoundTripper.
func (m *mint) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, errors.New("the issuer is down")
	}
	var answer any = map[string]any{
		"issuer": mintURL, "jwks_uri": mintURL + "/keys", "authorization_endpoint": mintURL, "token_endpoint": mintURL,
		"id_token_signing_alg_values_supported": []string{"ES256"},
	}
	if r.URL.Path == "/keys" {
		m.asked++
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
		for id, key := range m.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
		}
		answer = set
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		m.t.Error(err)
	}
	return w.Result(), nil
}

// publish has the issuer make a key, and token sign by it.
func (m *mint) publish(id string) *ecdsa.PrivateKey {
	key := newKey(m.t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[id] = key
	return key
}

func (m *mint) withdraw(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, id)
}

func (m *mint) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *mint) askedForKeys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// token gives one that a key of this id signs.
func token(t *testing.T, id string, key *ecdsa.PrivateKey) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{"iss": mintURL, "aud": "hdsd", "sub": "ann", "exp": time.Now().Add(24 * time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMadeUpKeysDelayNoRotation: whoever names keys that do not exist waits for it. A key
// that does exist is known within one interval, and the issuer is asked once in each.
func TestMadeUpKeysDelayNoRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMint(t)
		i := newIssuer(mintURL, m)
		first := m.publish("first")
		if _, err := i.verify(t.Context(), token(t, "first", first)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		stranger := newKey(t)
		for n := range 20 {
			flood.Go(func() {
				for k := 0; ctx.Err() == nil; k++ {
					began := time.Now()
					if _, err := i.verify(ctx, token(t, strconv.Itoa(n*1000+k), stranger)); err == nil {
						t.Error("a made-up key is taken")
					}
					if ctx.Err() == nil && time.Since(began) == 0 {
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
		time.Sleep(time.Minute)
		second := m.publish("second")
		began, before := time.Now(), m.askedForKeys()
		if _, err := i.verify(t.Context(), token(t, "second", second)); err != nil {
			t.Errorf("the new key, among made-up ones: %v", err)
		}
		if waited := time.Since(began); waited > keysInterval {
			t.Errorf("the new key waited %s", waited)
		}
		if before > int(time.Minute/keysInterval)+2 {
			t.Errorf("in a minute the issuer was asked for keys %d times", before)
		}
		cancel()
		flood.Wait()
	})
}

// TestAWithdrawnKeyEnds while others are in use; but not because its issuer is down.
func TestAWithdrawnKeyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMint(t)
		i := newIssuer(mintURL, m)
		stays, goes := token(t, "stays", m.publish("stays")), token(t, "goes", m.publish("goes"))
		taken := func(what, token string, want bool) {
			t.Helper()
			if _, err := i.verify(t.Context(), token); (err == nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		taken("one key", stays, true)
		taken("the other key", goes, true)
		m.setDown(true)
		time.Sleep(time.Hour)
		taken("while the issuer is down", goes, true)
		m.setDown(false)
		m.withdraw("goes")
		time.Sleep(5 * time.Minute)
		taken("the key that is left", stays, true)
		taken("the withdrawn key", goes, false)
		m.withdraw("stays")
		time.Sleep(5 * time.Minute)
		taken("the last key, withdrawn", stays, false)
	})
}
