package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/peer"
	"hdsd/peer/access"
)

// switchboard is a Controller that only remembers.
type switchboard struct {
	frozen *Freeze
	ended  string // who unfroze
	err    error

	overrides []Override
	cleared   []string // what was asked for
	panics    []string // what a preview says of them

	trust []Trust
	clock Clock

	sources  []Source
	accepted []SourceAcceptance

	notes []RecordedEvent
	audit []AuditEntry
	asked []AuditQuery
}

func (s *switchboard) Freeze(_ context.Context, f Freeze) (Freeze, *Freeze, error) {
	before := s.frozen
	f.Since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.frozen = &f
	return f, before, s.err
}

func (s *switchboard) Unfreeze(_ context.Context, author string) (*Freeze, error) {
	before := s.frozen
	s.frozen, s.ended = nil, author
	return before, s.err
}

func (s *switchboard) Frozen() *Freeze { return s.frozen }

func (s *switchboard) SetOverride(_ context.Context, o Override) (Override, *Override, error) {
	o.Since, o.Endpoints = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 1
	for i, before := range s.overrides {
		if before.Scope == o.Scope {
			s.overrides[i] = o
			return o, &before, s.err
		}
	}
	s.overrides = append(s.overrides, o)
	return o, nil, s.err
}

func (s *switchboard) ClearOverrides(_ context.Context, scope health.Endpoint, all bool, author string) ([]Override, error) {
	s.cleared = append(s.cleared, fmt.Sprintf("%v all=%t %s", scope, all, author))
	before := s.overrides
	s.overrides = nil
	return before, s.err
}

// Clusters are those that the caller has grants for.
func (s *switchboard) Clusters(ctx context.Context) access.Clusters {
	return access.FromContext(ctx).Clusters()
}

func (s *switchboard) Overrides(context.Context) ([]Override, error) {
	return slices.Clone(s.overrides), s.err
}

// PreviewOverride would decide two of three endpoints.
func (s *switchboard) PreviewOverride(_ context.Context, o Override) (Preview, error) {
	o.Endpoints = 2
	return Preview{Override: o, Total: 3, Panics: s.panics}, s.err
}

// Audit gives what comes after a place, oldest first.
func (s *switchboard) Audit(_ context.Context, q AuditQuery) ([]AuditEntry, bool, error) {
	s.asked = append(s.asked, q)
	rest := slices.DeleteFunc(slices.Clone(s.audit), func(e AuditEntry) bool { return e.Place <= q.After })
	return rest[:min(q.Limit, len(rest))], len(rest) > q.Limit, s.err
}

func (s *switchboard) Annotate(_ context.Context, note RecordedEvent) (RecordedEvent, error) {
	s.notes = append(s.notes, note)
	return note, s.err
}

func (s *switchboard) Backup(context.Context) (Copy, error) { return nil, s.err }

// call asks a handler; headers are "Name: value".
func call(t *testing.T, s *switchboard, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	control := NewControl(s)
	handler, err := control.Handler()
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(method, "http://127.0.0.1:18080"+path, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if request.Header.Set(name, value); name == "Host" {
			request.Host = value
		}
	}
	recorder := httptest.NewRecorder()
	control.Mark(handler).ServeHTTP(recorder, request)
	answer := recorder.Result()
	if stored := answer.Header.Get("Cache-Control"); stored != "no-store" {
		t.Errorf("%s %s may be stored: %q", method, path, stored)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var compact any
	if err := json.Unmarshal(text, &compact); err != nil {
		t.Fatalf("%s %s answers %q", method, path, text)
	}
	line, err := json.Marshal(compact)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(line)
}

const asJSON = "Content-Type: application/json"

// TestTheAuthorIsTheCaller: who does not say who makes a change is the one that the
// certificate names.
func TestTheAuthorIsTheCaller(t *testing.T) {
	s := &switchboard{}
	ctx := peer.With(t.Context(), peer.Caller{Identity: "spiffe://prod/sre/ann"})
	for author, want := range map[string]string{"": "spiffe://prod/sre/ann", "bob": "bob"} {
		if _, err := NewControl(s).Freeze(ctx, &hdsdv1.FreezeRequest{Reason: "moving", Author: author}); err != nil || s.frozen.Author != want {
			t.Errorf("%q: frozen by %q, %v, want %q", author, s.frozen.Author, err, want)
		}
	}
}

func TestFreezeOverREST(t *testing.T) {
	s := &switchboard{}
	steps := []struct{ method, path, body, want string }{
		{"GET", "/v1/freeze", "", `{"author":"","frozen":false,"publish":"SOURCES","reason":""}`},
		{"DELETE", "/v1/freeze?author=bob", "", `{}`},
		{"POST", "/v1/freeze", `{"reason": " moving ", "author": "alice"}`, `{"freeze":{"author":"alice","frozen":true,"publish":"SOURCES","reason":"moving","since":"2026-01-02T03:04:05Z"}}`},
		{"POST", "/v1/freeze", `{"reason": "still", "publish": "HELD"}`, `{"freeze":{"author":"unknown","frozen":true,"publish":"HELD","reason":"still","since":"2026-01-02T03:04:05Z"},` +
			`"replaced":{"author":"alice","frozen":true,"publish":"SOURCES","reason":"moving","since":"2026-01-02T03:04:05Z"}}`},
		{"GET", "/v1/freeze", "", `{"author":"unknown","frozen":true,"publish":"HELD","reason":"still","since":"2026-01-02T03:04:05Z"}`},
		{"DELETE", "/v1/freeze?author=bob", "", `{"ended":{"author":"unknown","frozen":true,"publish":"HELD","reason":"still","since":"2026-01-02T03:04:05Z"}}`},
	}
	for _, step := range steps {
		answer, text := call(t, s, step.method, step.path, step.body, asJSON)
		if answer.StatusCode != http.StatusOK || strings.ReplaceAll(text, `,"since":null`, "") != step.want {
			t.Errorf("%s %s %s: %d %s, want %s", step.method, step.path, step.body, answer.StatusCode, text, step.want)
		}
	}
	if s.ended != "bob" {
		t.Errorf("%q unfroze", s.ended)
	}
}

// TestChangesThatAreNotDurable: what the disk does not take is in force all the same, and
// the answer says that it is not durable.
func TestChangesThatAreNotDurable(t *testing.T) {
	s := &switchboard{err: &NotDurable{Reason: "a restart undoes that: no space left"}}
	for _, change := range []struct{ method, path, body, done string }{
		{"POST", FreezePath, `{"reason":"moving"}`, `"freeze":{`},
		{"DELETE", FreezePath, "", `"ended":{`},
		{"POST", OverridesPath, `{"cluster":"web","health":"DRAINING","reason":"moving"}`, `"override":{`},
		{"DELETE", OverridesPath + "?cluster=web", "", `"ended":[{`},
		{"POST", TrustPath, `{"checker":"a","word":"TRUSTED","reason":"moving"}`, `"trust":{`},
		{"DELETE", TrustPath + "?checker=a", "", `"ended":{`},
	} {
		answer, text := call(t, s, change.method, change.path, change.body, asJSON)
		if answer.StatusCode != http.StatusOK || !strings.Contains(text, change.done) ||
			!strings.Contains(text, `"notDurable":"a restart undoes that: no space left"`) {
			t.Errorf("%s %s: %d %s", change.method, change.path, answer.StatusCode, text)
		}
	}
	s.err = errors.New("the core is gone")
	if answer, text := call(t, s, "POST", FreezePath, `{"reason":"moving"}`, asJSON); answer.StatusCode != http.StatusInternalServerError {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

func TestWrongFreezes(t *testing.T) {
	for body, says := range map[string]string{
		`{}`:                                  "reason: is required",
		`{"reason": "  "}`:                    "reason: is required",
		`{"reason": "a\nb"}`:                  "reason: has a character at byte 1",
		`{"reason": "a\u001b[31m"}`:           "reason: has a character",
		`{"reason": "a\u202eb"}`:              "reason: has a character",
		`{"reason": "x", "author": "\u0000"}`: "author: has a character",
		`{"reason": "x", "publish": 7}`:       "publish: 7",
		`{"reason": "x", "publish": "Y"}`:     "Y",
		`{"reason": "x", "why": "y"}`:         "why",
		`{"reason"`:                           "EOF",
		``:                                    "reason",
		`{"reason": "` + strings.Repeat("x", 1001) + `"}`:               "longer than 1000 bytes",
		`{"reason": "x", "author": "` + strings.Repeat("x", 201) + `"}`: "longer than 200 bytes",
		`{"reason": "` + strings.Repeat("x", maxBody) + `"}`:            "too large",
	} {
		s := &switchboard{}
		answer, text := call(t, s, "POST", "/v1/freeze", body, asJSON)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, says) || s.frozen != nil {
			t.Errorf("%.80s: %d %s, want 400 with %q", body, answer.StatusCode, text, says)
		}
	}
	for _, path := range []string{"/v1/freeze?reason=x", "/v1/freeze?author=x"} {
		s := &switchboard{}
		if answer, text := call(t, s, "POST", path, `{"reason": "x"}`, asJSON); answer.StatusCode != http.StatusBadRequest || s.frozen != nil {
			t.Errorf("POST %s: %d %s", path, answer.StatusCode, text)
		}
	}
	if answer, text := call(t, &switchboard{}, "PUT", "/v1/freeze", "{}", asJSON); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d %s", answer.StatusCode, text)
	}
}

func TestAnswersAreMarkedWhileFrozen(t *testing.T) {
	s := &switchboard{}
	if answer, _ := call(t, s, "GET", "/v1/freeze", ""); answer.Header.Get("x-hdsd-frozen") != "" {
		t.Error("marked as frozen")
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for reason, want := range map[string]string{
		"moving": "frozen since 2026-01-02T03:04:05Z by alice: moving",
		"Umzüge": "=?utf-8?q?frozen_since_2026-01-02T03:04:05Z_by_alice:_Umz=C3=BCge?=",
	} {
		s.frozen = &Freeze{Reason: reason, Author: "alice", Since: at}
		if answer, _ := call(t, s, "GET", "/v1/freeze", ""); answer.Header.Get("x-hdsd-frozen") != want {
			t.Errorf("the mark is %q, want %q", answer.Header.Get("x-hdsd-frozen"), want)
		}
	}
}

func TestErrorsOfTheControllerKeepTheirCodes(t *testing.T) {
	for want, err := range map[codes.Code]error{
		codes.DeadlineExceeded: context.DeadlineExceeded, codes.Unavailable: status.Error(codes.Unavailable, "stopping"),
	} {
		control := NewControl(&switchboard{err: err})
		_, freezing := control.Freeze(t.Context(), &hdsdv1.FreezeRequest{Reason: "x"})
		_, unfreezing := control.Unfreeze(t.Context(), &hdsdv1.UnfreezeRequest{})
		if status.Code(freezing) != want || status.Code(unfreezing) != want {
			t.Errorf("%v becomes %v and %v", err, freezing, unfreezing)
		}
	}
}
