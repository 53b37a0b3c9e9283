package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func (s *switchboard) Clock() Clock { return s.clock }

func (s *switchboard) ConfirmClock(_ context.Context, author string) (Clock, error) {
	before := s.clock
	s.clock, s.ended = Clock{Wall: before.Wall, Steady: before.Wall}, author
	return before, s.err
}

func TestClockOverREST(t *testing.T) {
	steady := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &switchboard{clock: Clock{Doubted: true, Wall: steady.AddDate(1, 0, 0), Steady: steady, Since: steady.AddDate(0, 0, -1)}}
	const doubted = `{"clock":"2027-01-02T03:04:05Z","doubted":true,"since":"2026-01-01T03:04:05Z","steady":"2026-01-02T03:04:05Z"}`
	const believed = `{"clock":"2027-01-02T03:04:05Z","doubted":false,"steady":"2027-01-02T03:04:05Z"}`
	for _, step := range []struct{ method, body, want string }{
		{"GET", "", doubted},
		{"POST", `{"author":" ann "}`, `{"before":` + doubted + `}`},
		{"GET", "", believed},
		{"POST", `{}`, `{"before":` + believed + `}`},
	} {
		answer, text := call(t, s, step.method, ClockPath, step.body, asJSON)
		if answer.StatusCode != http.StatusOK || text != step.want {
			t.Errorf("%s %s: %d %s, want %s", step.method, step.body, answer.StatusCode, text, step.want)
		}
	}
	if answer, text := call(t, s, "POST", ClockPath, `{"author":"a\nb"}`, asJSON); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "cannot be shown") {
		t.Errorf("an author of two lines: %d %s", answer.StatusCode, text)
	}
	s.err = errors.New("full")
	if answer, _ := call(t, s, "POST", ClockPath, `{}`, asJSON); answer.StatusCode != http.StatusInternalServerError {
		t.Errorf("a disk that is full: %d", answer.StatusCode)
	}
}
