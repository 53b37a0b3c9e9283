package coordinator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	pki "hdsd/test/authority"
)

// TestProfilesNeedAdmin covers profiles and traces, which only their own address serves.
func TestProfilesNeedAdmin(t *testing.T) {
	hashOf := func(token string) string {
		hash := sha256.Sum256([]byte(token))
		return hex.EncodeToString(hash[:])
	}
	config := strings.ReplaceAll(quick, `"127.0.0.1:0"`, `"127.0.0.1:0", `+mutual) + `admin: {address: "127.0.0.1:0"}` + "\n" +
		fmt.Sprintf("access: {grants: [{roles: [ADMIN], token_sha256: %s}, {roles: [OPERATOR, VIEWER], token_sha256: %s}]}\n", hashOf("boss"), hashOf("ann"))
	s := secured(t, pki.New(t, "one"), config)
	ask := func(path, token string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.AdminAddress()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/flight": "go 1."} {
		if code, text := ask(path, "boss"); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.100q", path, code, text)
		}
		for token, want := range map[string]int{"": http.StatusUnauthorized, "ann": http.StatusForbidden} {
			if code, text := ask(path, token); code != want {
				t.Errorf("%s with the token %q: %d %.100q, want %d", path, token, code, text, want)
			}
		}
	}
	if code, _ := ask("/v1/endpoints", "boss"); code != http.StatusNotFound {
		t.Errorf("/v1/endpoints is served there: %d", code)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	if answer, err := client.Get("http://" + s.HTTPAddress() + "/debug/pprof/"); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("profiles are served on the address of HTTP")
		}
	}
}
