package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestAnnotate: a note has a text, an author, and a time that is not in the future.
func TestAnnotate(t *testing.T) {
	s := &switchboard{}
	at := "2026-01-02T03:04:05Z"
	answer, text := call(t, s, http.MethodPost, AnnotationsPath, `{"text": " rolled out v7 ", "cluster": "web", "time": "`+at+`", "author": "ann"}`)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"kind":"NOTE"`) || !strings.Contains(text, at) {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, text := call(t, s, http.MethodPost, AnnotationsPath, `{"text": "now"}`); answer.StatusCode != http.StatusOK {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if n := s.notes; len(n) != 2 || n[0].Text != "rolled out v7" || n[0].Cluster != "web" || n[0].Author != "ann" || n[0].Kind != hdsdv1.Event_NOTE ||
		n[0].Time.Format(time.RFC3339) != at || time.Since(n[1].Time) > time.Hour || n[1].Author != "unknown" {
		t.Errorf("noted: %+v", n)
	}
	for name, body := range map[string]string{
		"text: is required":   `{"text": " "}`,
		"cannot be shown":     `{"text": "two\nlines"}`,
		"longer than":         `{"text": "` + strings.Repeat("x", maxReason+1) + `"}`,
		"is in the future":    `{"text": "x", "time": "2999-01-01T00:00:00Z"}`,
		"author: is longer":   `{"text": "x", "author": "` + strings.Repeat("x", maxAuthor+1) + `"}`,
		"unknown field":       `{"text": "x", "colour": "red"}`,
		"time: invalid":       `{"text": "x", "time": "yesterday"}`,
		"text: invalid value": `{"text": 7}`,
	} {
		if answer, text := call(t, s, http.MethodPost, AnnotationsPath, body); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
	}
	if len(s.notes) != 2 {
		t.Errorf("something refused was noted: %+v", s.notes)
	}
}
