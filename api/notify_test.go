package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func (s *switchboard) Receivers() []Receiver {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []Receiver{{
		Name: "oncall", Type: "webhook", Open: 1, Queued: 2, FailingSince: at, LastError: "no route", Dropped: 3,
		DeadLetters: []DeadLetter{{Time: at, Kind: "TEST", Summary: "x", Resolved: true, Error: "y"}},
	}}
}

func (s *switchboard) NotifyTest(_ context.Context, name, author string) (bool, string, error) {
	return name == "oncall", "asked by " + author, s.err
}

func TestNotify(t *testing.T) {
	_, got := call(t, &switchboard{}, "GET", NotifyPath, "")
	const want = `{"receivers":[{"deadLetters":[{"error":"y","kind":"TEST","resolved":true,"summary":"x","time":"2026-01-02T03:04:05Z"}],"dropped":"3","failingSince":"2026-01-02T03:04:05Z","lastError":"no route","name":"oncall","open":1,"queued":2,"type":"webhook"}]}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for request, want := range map[string]string{
		`{"name":"oncall","author":"ann"}`: `{"answer":"asked by ann","ok":true}`,
		`{"name":"other"}`:                 `"ok":false`,
	} {
		if answer, text := call(t, &switchboard{}, "POST", NotifyPath, request, asJSON); answer.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", request, answer.StatusCode, text)
		}
	}
	if answer, text := call(t, &switchboard{}, "POST", NotifyPath, `{}`, asJSON); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "name: is required") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, _ := call(t, &switchboard{err: &NotDurable{Reason: "disk"}}, "POST", NotifyPath, `{"name":"oncall"}`, asJSON); answer.StatusCode != http.StatusOK {
		t.Errorf("sent, and not in the audit: %d", answer.StatusCode)
	}
}
