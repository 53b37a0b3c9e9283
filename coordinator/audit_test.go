package coordinator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestChangesAreAudited makes each change over REST or gRPC, and restarts hdsd. The entry of the audit is on
// disk with the change.
func TestChangesAreAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newSite(t, dir, quick, static("web", "127.0.0.1:1", "127.0.0.1:2"))
	s.ready()
	for _, step := range []struct{ method, path, body string }{
		{"POST", "/v1/freeze", `{"reason": "moving", "author": "ann"}`},
		{"DELETE", "/v1/freeze?author=bob", ""},
		{"DELETE", "/v1/freeze?author=bob", ""}, // changes nothing
		{"POST", "/v1/overrides/preview", `{"cluster": "web", "health": "DRAINING", "reason": "x", "author": "ann"}`},
		{"POST", "/v1/overrides", `{"cluster": "web", "address": "127.0.0.1:1", "health": "DRAINING", "reason": "kernel", "author": "ann"}`},
		{"POST", "/v1/overrides", `{"cluster": "web", "address": "127.0.0.1:1", "health": "UNHEALTHY", "reason": "worse", "author": "bob"}`},
		{"POST", "/v1/overrides", `{"cluster": "web", "address": "127.0.0.1:1", "health": "UNHEALTHY", "reason": "worse", "author": "bob"}`}, // changes nothing
		{"DELETE", "/v1/overrides?cluster=web&all=true&author=bob", ""},
		{"POST", "/v1/trust", `{"checker": "c-1", "word": "DISTRUSTED", "reason": "lies", "author": "ann"}`},
		{"DELETE", "/v1/trust?checker=c-1&author=bob", ""},
	} {
		s.change(step.method, step.path, step.body)
	}
	backup, err := hdsdv1.NewControlClient(s.dial()).Backup(t.Context(), &hdsdv1.BackupRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = backup.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	s.stopped()
	again := newSite(t, dir, quick, static("web", "127.0.0.1:1", "127.0.0.1:2"))
	again.ready()
	var audit struct {
		Entries []struct{ Time, Identity, Address, Author, Action, Target, Before, After, Reason string }
	}
	status, body := again.get("/v1/audit")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if err := json.Unmarshal([]byte(body), &audit); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range audit.Entries {
		if e.Identity != "" || !strings.HasPrefix(e.Address, "127.0.0.1:") || e.Time == "" {
			t.Errorf("made by %q at %q, %q", e.Identity, e.Address, e.Time)
		}
		lines = append(lines, fmt.Sprintf("%s %s of %s: %t -> %t (%s)", e.Action, e.Target, e.Author, e.Before != "", e.After != "", e.Reason))
	}
	want := []string{
		"Freeze  of ann: false -> true (moving)",
		"Unfreeze  of bob: true -> false ()",
		"SetOverride web 127.0.0.1:1 of ann: false -> true (kernel)",
		"SetOverride web 127.0.0.1:1 of bob: true -> true (worse)",
		"ClearOverrides web 127.0.0.1:1 of bob: true -> false ()",
		"SetTrust c-1 of ann: false -> true (lies)",
		"ClearTrust c-1 of bob: true -> false ()",
		"Backup  of : false -> true ()",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the audit has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
