package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func (s *switchboard) Sources() []Source { return s.sources }

func (s *switchboard) AcceptSource(_ context.Context, a SourceAcceptance) (Held, Source, error) {
	s.accepted = append(s.accepted, a)
	return *s.sources[0].Held, Source{Name: a.Source, Clusters: 1, Endpoints: 2}, s.err
}

func TestSources(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	board := &switchboard{sources: []Source{
		{Name: "mesh", Clusters: 10, Endpoints: 20, Problem: "web: no", Held: &Held{Since: at, AcceptsAt: at.Add(time.Minute), Clusters: 1, Endpoints: 2, Revision: "ab"}},
		{Name: "local", Clusters: 3, Endpoints: 4},
	}}
	if text := board.sources[0].Held.String(); !strings.HasSuffix(text, "it leaves 1 cluster and 2 endpoints") {
		t.Errorf("held: %s", text)
	}
	if text := AmountText(3, 1); text != "3 clusters and 1 endpoint" {
		t.Error(text)
	}
	_, got := call(t, board, "GET", SourcesPath, "")
	if want := `{"sources":[{"clusters":10,"endpoints":20,"held":{"acceptsAt":"2026-01-02T03:05:05Z","clusters":1,"endpoints":2,"revision":"ab","since":"2026-01-02T03:04:05Z"},"name":"mesh","problem":"web: no"},`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for request, want := range map[string]string{
		`{}`:                                 "name: is required",
		`{"name":"mesh","reason":"a\nb"}`:    "reason: has a character",
		`{"name":"mesh","heldSince":"soon"}`: "Timestamp",
	} {
		if answer, text := call(t, board, "POST", SourcesPath, request, asJSON); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", request, answer.StatusCode, text)
		}
	}
	answer, text := call(t, board, "POST", SourcesPath, `{"name":"mesh","reason":"gone","author":"ann","heldSince":"2026-01-02T03:04:05Z","heldRevision":"ab"}`, asJSON)
	if answer.StatusCode != http.StatusOK || len(board.accepted) != 1 || board.accepted[0] != (SourceAcceptance{Source: "mesh", Reason: "gone", Author: "ann", Since: at, Revision: "ab"}) {
		t.Errorf("%d %s, %+v", answer.StatusCode, text, board.accepted)
	}
}
