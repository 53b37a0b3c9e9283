package send

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hdsd/notify"
)

// TestNoAnswerShowsASecret: a receiver may answer with what it was sent. Answers are logged, and
// shown to whoever may see the receivers.
func TestNoAnswerShowsASecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, "not you: "+r.Header.Get("Authorization")+" "+password, http.StatusUnauthorized)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSender(&Options{ReadSecret: os.ReadFile}, http.DefaultTransport)
	for _, to := range []Target{{TokenFile: path}, {User: "ann", PasswordFile: path}} {
		to.Type, to.URL = Webhook, server.URL
		answer, err := s.send(t.Context(), &to, []notify.Notice{aNotice}, time.Now())
		if err == nil || !strings.Contains(answer, "not you: ") {
			t.Fatalf("%q, %v", answer, err)
		}
		for _, secret := range []string{"hunter2", "YW5uOmh1bnRlcjI="} {
			if strings.Contains(answer+err.Error(), secret) {
				t.Errorf("an answer shows a secret: %q, %v", answer, err)
			}
		}
	}
}
