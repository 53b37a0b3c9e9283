package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

func (s *switchboard) SetTrust(ctx context.Context, t Trust) (Trust, *Trust, error) {
	before, _ := s.ClearTrust(ctx, t.Checker, "")
	t.Since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.trust = append(s.trust, t)
	return t, before, s.err
}

func (s *switchboard) ClearTrust(_ context.Context, checker, _ string) (*Trust, error) {
	i := slices.IndexFunc(s.trust, func(t Trust) bool { return t.Checker == checker })
	if i < 0 {
		return nil, s.err
	}
	before := s.trust[i]
	s.trust = slices.Delete(s.trust, i, i+1)
	return &before, s.err
}

func (s *switchboard) Trust(context.Context) ([]Trust, error) { return s.trust, s.err }

func TestTrustOverREST(t *testing.T) {
	s := &switchboard{}
	said := func(word, author string) string {
		return `{"author":"` + author + `","checker":"checker-7","reason":"stuck","since":"2026-01-02T03:04:05Z","word":"` + word + `"}`
	}
	for _, step := range []struct{ method, query, body, want string }{
		{"GET", "", "", `{"trust":[]}`},
		{"POST", "", `{"checker":"checker-7","word":"DISTRUSTED","reason":" stuck ","author":"ann"}`, `{"trust":` + said("DISTRUSTED", "ann") + `}`},
		{"POST", "", `{"checker":"checker-7","word":"TRUSTED","reason":"stuck"}`, `{"replaced":` + said("DISTRUSTED", "ann") + `,"trust":` + said("TRUSTED", "unknown") + `}`},
		{"GET", "", "", `{"trust":[` + said("TRUSTED", "unknown") + `]}`},
		{"DELETE", "?checker=checker-7&author=bob", "", `{"ended":` + said("TRUSTED", "unknown") + `}`},
		{"DELETE", "?checker=checker-7", "", `{}`},
	} {
		answer, text := call(t, s, step.method, TrustPath+step.query, step.body, asJSON)
		if answer.StatusCode != http.StatusOK || text != step.want {
			t.Errorf("%s %s %s: %d %s, want %s", step.method, step.query, step.body, answer.StatusCode, text, step.want)
		}
	}
}

func TestWrongTrust(t *testing.T) {
	for body, says := range map[string]string{
		`{"word":"TRUSTED","reason":"x"}`:                                                      "checker: is required",
		`{"checker":"c","reason":"x"}`:                                                         "neither DISTRUSTED nor TRUSTED",
		`{"checker":"c","word":"TRUSTED"}`:                                                     "reason: is required",
		`{"checker":"c\u0007","word":"TRUSTED","reason":"x"}`:                                  "cannot be shown",
		`{"checker":"c","word":"TRUSTED","reason":"x","author":"a\nb"}`:                        "cannot be shown",
		`{"checker":"` + strings.Repeat("c", 1001) + `","word":"TRUSTED","reason":"x"}`:        "longer than",
		`{"checker":"c","word":"TRUSTED","reason":"` + strings.Repeat("x", maxReason+1) + `"}`: "longer than",
	} {
		s := &switchboard{}
		if answer, text := call(t, s, "POST", TrustPath, body, asJSON); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, says) || len(s.trust) > 0 {
			t.Errorf("%s: %d %s", body, answer.StatusCode, text)
		}
	}
	if answer, _ := call(t, &switchboard{}, "DELETE", TrustPath, ""); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without a checker: %d", answer.StatusCode)
	}
}

func TestZonesAndTrustAreShown(t *testing.T) {
	zones := []health.ZoneVerdict{{Region: "eu", Zone: "a", Status: health.Timeout, Down: 2}, {Status: health.Healthy, Up: 1}}
	got := endpointMessage(EndpointHealth{Verdict: health.Verdict{Zones: zones}}).GetZones()
	if len(got) != 2 || got[0].GetZone() != "a" || got[0].GetRegion() != "eu" || got[0].GetDown() != 2 || got[0].GetHealth().String() != "TIMEOUT" || got[1].GetUp() != 1 {
		t.Errorf("got %v", got)
	}
	if got := endpointMessage(EndpointHealth{Verdict: health.Verdict{Zones: zones[1:]}}).GetZones(); len(got) > 0 {
		t.Errorf("where no checker has a zone: %v", got)
	}
	if got := checkerMessage(Checker{CutPaths: []CutPath{{"eu/a", "why"}}}).GetCutPaths(); len(got) != 1 || got[0].GetTo() != "eu/a" || got[0].GetReason() != "why" {
		t.Errorf("got %v", got)
	}
	if got := checkerMessage(Checker{Trusted: true, BlindReason: "why"}); got.GetBlindReason() != "why" || !got.GetTrusted() || got.GetDistrustReason() != "" {
		t.Errorf("got %v", got)
	}
	if got := checkerMessage(Checker{Operator: &Trust{Checker: "c", Trusted: true, Author: "ann"}}).GetOperator(); got.GetWord() != hdsdv1.Trust_TRUSTED || got.GetAuthor() != "ann" {
		t.Errorf("got %v", got)
	}
}
