package coordinator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"hdsd/peer/access"
	"hdsd/test/rest"
)

// TestDeniedRequestsMatchDocument covers each path, for callers without an identity and without the role.
func TestDeniedRequestsMatchDocument(t *testing.T) {
	t.Parallel()
	document := rest.Load(t)
	sum := sha256.Sum256([]byte("x"))
	grants := "access: {grants: [{roles: [ROLE], token_sha256: '" + hex.EncodeToString(sum[:]) + "'}]}\n"
	s := newSite(t, t.TempDir(), quick+strings.Replace(grants, "ROLE", "CHECKER", 1), static("web", "127.0.0.1:1"))
	other := newSite(t, t.TempDir(), quick+strings.Replace(grants, "ROLE", "DATA_PLANE", 1), static("web", "127.0.0.1:1"))
	ask := func(s *site, method, path, token string) *rest.Answer {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.HTTPAddress()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Header.Set("Content-Type", "application/json"); token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := (&http.Client{Timeout: patience}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return &rest.Answer{Method: method, Target: path, Status: answer.StatusCode, Header: answer.Header, Body: text}
	}
	asked := 0
	for _, what := range document.Unseen(http.StatusForbidden) {
		operation, ok := strings.CutSuffix(what, " 403")
		if !ok {
			continue
		}
		method, path, _ := strings.Cut(operation, " ")
		need := access.OfRequest(method, path)
		asked++
		denies := s
		if need.Role == access.Checker {
			denies = other
		}
		for token, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "x": http.StatusForbidden} {
			a := ask(denies, method, path, token)
			if a.Status != want || !strings.Contains(string(a.Body), "this needs role "+need.Role.String()) {
				t.Errorf("%s with %q: %d %s, want %d with the role", what, token, a.Status, a.Body, want)
			}
			if err := document.Check(a); err != nil {
				t.Errorf("%s with %q: %v", what, token, err)
			}
		}
	}
	if asked < len(access.Paths)-2 { // all but /healthz and /readyz
		t.Errorf("%d operations need a role", asked)
	}
}
