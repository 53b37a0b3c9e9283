package api

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAuditOverREST(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &switchboard{audit: []AuditEntry{
		{Time: at, Identity: "spiffe://prod/ann", Address: "10.0.0.1:1", Author: "ann", Action: "SetTrust", Target: "c-1", After: "distrusted", Reason: "why", Place: 7},
		{Time: at, Author: "bob", Action: "Unfreeze", Before: "frozen", Place: 9},
	}}
	_, got := call(t, s, "GET", "/v1/audit?pageSize=1&startTime=2026-01-01T00:00:00Z", "")
	var page struct {
		Entries       json.RawMessage
		NextPageToken string
	}
	if err := json.Unmarshal([]byte(got), &page); err != nil {
		t.Fatal(err)
	}
	want := `[{"action":"SetTrust","address":"10.0.0.1:1","after":"distrusted","author":"ann","before":"","identity":"spiffe://prod/ann","reason":"why","target":"c-1","time":"2026-01-02T03:04:05Z"}]`
	if string(page.Entries) != want || page.NextPageToken == "" {
		t.Errorf("got %s, want %s and a token", got, want)
	}
	_, got = call(t, s, "GET", "/v1/audit?pageSize=1&startTime=2026-01-01T00:00:00Z&pageToken="+url.QueryEscape(page.NextPageToken), "")
	if !strings.Contains(got, "Unfreeze") || strings.Contains(got, "SetTrust") {
		t.Errorf("the second page is %s", got)
	}
	if q := s.asked[1]; q.After != 7 || q.Limit != 1 || !q.Start.Equal(at.Truncate(24*time.Hour).Add(-24*time.Hour)) {
		t.Errorf("asked for %+v", q)
	}
	for _, wrong := range []string{"pageSize=-1", "pageToken=x", "startTime=2027-01-01T00:00:00Z&endTime=2026-01-01T00:00:00Z", "newestFirst=true&pageToken=" + url.QueryEscape(page.NextPageToken)} {
		if response, got := call(t, s, "GET", "/v1/audit?"+wrong, ""); response.StatusCode != 400 {
			t.Errorf("%s: %d %s", wrong, response.StatusCode, got)
		}
	}
}

func TestPreviewOverREST(t *testing.T) {
	s := &switchboard{panics: []string{"cluster web: why"}}
	_, got := call(t, s, "POST", "/v1/overrides/preview", `{"cluster": "web", "health": "DRAINING", "reason": "x"}`, asJSON)
	if !strings.Contains(got, `"endpoints":2`) || !strings.Contains(got, `"totalEndpoints":3`) || !strings.Contains(got, `"panics":["cluster web: why"]`) {
		t.Errorf("got %s", got)
	}
	if len(s.overrides) > 0 {
		t.Errorf("a preview set %v", s.overrides)
	}
	if response, got := call(t, s, "POST", "/v1/overrides/preview", `{"cluster": "web", "reason": "x"}`, asJSON); response.StatusCode != 400 {
		t.Errorf("without a health: %d %s", response.StatusCode, got)
	}
}
