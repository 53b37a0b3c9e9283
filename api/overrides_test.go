package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

func TestOverridesOverREST(t *testing.T) {
	s := &switchboard{}
	const since = `"since":"2026-01-02T03:04:05Z"`
	one := func(address, author, to string) string {
		return fmt.Sprintf(`{"address":%q,"author":%q,"cluster":"web","endpoints":1,"health":%q,"locality":{"region":"eu","subZone":"","zone":"a"},"reason":"kernel",%s}`, address, author, to, since)
	}
	const eu = `"locality":{"region":"eu","zone":"a"},`
	steps := []struct{ method, query, body, want string }{
		{"GET", "", "", `{"nextPageToken":"","overrides":[]}`},
		{"POST", "", `{"cluster":"web",` + eu + `"health":"DRAINING","reason":" kernel ","author":"ann"}`, `{"override":` + one("", "ann", "DRAINING") + `}`},
		{"POST", "", `{"cluster":"web",` + eu + `"health":"UNHEALTHY","reason":"kernel"}`, `{"override":` + one("", "unknown", "UNHEALTHY") + `,"replaced":` + one("", "ann", "DRAINING") + `}`},
		{"POST", "", `{"cluster":"web","address":"x",` + eu + `"health":"HEALTHY","reason":"kernel"}`, `{"override":` + one("x", "unknown", "HEALTHY") + `}`},
		{"GET", "?pageSize=2", "", `{"nextPageToken":"","overrides":[` + one("", "unknown", "UNHEALTHY") + `,` + one("x", "unknown", "HEALTHY") + `]}`},
		{"DELETE", "?cluster=web&region=eu&zone=a&subZone=&all=true&author=bob", "", `{"ended":[` + one("", "unknown", "UNHEALTHY") + `,` + one("x", "unknown", "HEALTHY") + `]}`},
		{"DELETE", "?all=1", "", `{"ended":[]}`},
	}
	for _, step := range steps {
		answer, text := call(t, s, step.method, OverridesPath+step.query, step.body, asJSON)
		text = strings.NewReplacer(`,"until":null`, "", `,"replaced":null`, "").Replace(text)
		if answer.StatusCode != http.StatusOK || text != step.want {
			t.Errorf("%s %s %s: %d %s, want %s", step.method, step.query, step.body, answer.StatusCode, text, step.want)
		}
	}
	if got := strings.Join(s.cleared, "; "); got != "{web {eu a } } all=true bob; { {  } } all=true unknown" {
		t.Errorf("cleared were %s", got)
	}
}

func TestAnOverrideHasAnEnd(t *testing.T) {
	s := &switchboard{}
	before := time.Now()
	if _, text := call(t, s, "POST", OverridesPath, `{"cluster":"web","health":"DRAINING","reason":"x","duration":"90s"}`, asJSON); !strings.Contains(text, `"until":"20`) {
		t.Error(text)
	}
	if until := s.overrides[0].Until; until.Before(before.Add(90*time.Second)) || until.After(time.Now().Add(90*time.Second)) {
		t.Errorf("it ends at %v", until)
	}
}

func TestWrongOverrides(t *testing.T) {
	for body, says := range map[string]string{
		`{"health":"DRAINING","reason":"x"}`:                                                 "name a target",
		`{"address":"x","health":"DRAINING","reason":"x"}`:                                   "address: needs its cluster",
		`{"cluster":"web","reason":"x"}`:                                                     "health: UNKNOWN is not one of",
		`{"cluster":"web","health":"TIMEOUT","reason":"x"}`:                                  "health: TIMEOUT is not one of",
		`{"cluster":"web","health":77,"reason":"x"}`:                                         "health: 77 is not one of",
		`{"cluster":"web","health":"DRAINING"}`:                                              "reason: is required",
		`{"cluster":"web","health":"DRAINING","reason":"a\nb"}`:                              "reason: has a character",
		`{"cluster":"web","health":"DRAINING","reason":"x","author":"a\u0000"}`:              "author: has a character",
		`{"cluster":"a\u001b[31m","health":"DRAINING","reason":"x"}`:                         "cluster: has a character",
		`{"locality":{"subZone":"a\u202e"},"health":"DRAINING","reason":"x"}`:                "locality.sub_zone: has a character",
		`{"cluster":"` + strings.Repeat("x", 1001) + `","health":"DRAINING","reason":"x"}`:   "cluster: is longer than",
		`{"cluster":"web","health":"DRAINING","reason":"x","duration":"0s"}`:                 "duration: is not between",
		`{"cluster":"web","health":"DRAINING","reason":"x","duration":"-1s"}`:                "duration: is not between",
		`{"cluster":"web","health":"DRAINING","reason":"x","duration":"315576000000s"}`:      "duration: is not between",
		`{"cluster":"web","health":"DRAINING","reason":"x","duration":"1h"}`:                 "Duration",
		`{"cluster":"web","health":"DRAINING","reason":"x","until":"2026-01-02T03:04:05Z"}`:  "until",
		`{"cluster":"web","health":"DRAINING","reason":"` + strings.Repeat("x", 1001) + `"}`: "longer than 1000 bytes",
	} {
		s := &switchboard{}
		answer, text := call(t, s, "POST", OverridesPath, body, asJSON)
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, says) || len(s.overrides) > 0 {
			t.Errorf("%.80s: %d %s, want 400 with %q", body, answer.StatusCode, text, says)
		}
	}
	for query, says := range map[string]string{
		"":                        "name the override's target",
		"?author=bob":             "name the override's target",
		"?address=x":              "address: needs its cluster",
		"?address=x&all=true":     "address: needs its cluster",
		"?cluster=web&author=%00": "author: has a character",
		"?locality=eu":            "unknown parameter",
	} {
		s := &switchboard{}
		if answer, text := call(t, s, "DELETE", OverridesPath+query, ""); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, says) || len(s.cleared) > 0 {
			t.Errorf("DELETE %s: %d %s, want 400 with %q", query, answer.StatusCode, text, says)
		}
	}
}

func TestListOverridesGoesByPage(t *testing.T) {
	s := &switchboard{}
	for i := range 5 {
		s.overrides = append(s.overrides, Override{Scope: health.Endpoint{Cluster: fmt.Sprint(i)}})
	}
	control := NewControl(s)
	var seen []string
	for token, pages := "", 0; pages == 0 || token != ""; pages++ {
		answer, err := control.ListOverrides(t.Context(), &hdsdv1.ListOverridesRequest{PageSize: 2, PageToken: token})
		if err != nil || pages > 3 {
			t.Fatal(pages, err)
		}
		for _, o := range answer.GetOverrides() {
			seen = append(seen, o.GetCluster())
		}
		token = answer.GetNextPageToken()
	}
	if got := strings.Join(seen, ""); got != "01234" {
		t.Errorf("seen are %s", got)
	}
	for _, request := range []*hdsdv1.ListOverridesRequest{{PageSize: -1}, {PageToken: "nonsense"}} {
		if _, err := control.ListOverrides(t.Context(), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", request, err)
		}
	}
	s.err = status.Error(codes.Unavailable, "stopping")
	_, listing := control.ListOverrides(t.Context(), &hdsdv1.ListOverridesRequest{})
	_, setting := control.SetOverride(t.Context(), &hdsdv1.SetOverrideRequest{Cluster: "web", Health: corev3.HealthStatus_DRAINING, Reason: "x"})
	_, clearing := control.ClearOverrides(t.Context(), &hdsdv1.ClearOverridesRequest{Cluster: "web"})
	for _, err := range []error{listing, setting, clearing} {
		if status.Code(err) != codes.Unavailable {
			t.Errorf("an error becomes %v", err)
		}
	}
}

func TestEndpointsShowTheirOverride(t *testing.T) {
	o := Override{Scope: health.Endpoint{Cluster: "web"}, Status: health.Draining, Author: "ann"}
	m := endpointMessage(EndpointHealth{Verdict: health.Verdict{Status: health.Draining}, Override: &o, Voted: &health.Verdict{Status: health.Healthy, Reason: "why"}})
	if m.GetOverride().GetAuthor() != "ann" || m.GetVoted() != corev3.HealthStatus_HEALTHY || m.GetVotedReason() != "why" {
		t.Errorf("shown is %v", m)
	}
	if m := endpointMessage(EndpointHealth{}); m.Override != nil || m.Voted != nil || m.VotedReason != nil {
		t.Errorf("shown is %v", m)
	}
}

// FuzzOverride has whatever is asked for end in an override that can be shown, or
// in a refusal.
func FuzzOverride(f *testing.F) {
	f.Add("web", "10.0.0.1:80", "eu", "a", "", "why", "ann", int32(3), int64(60), int32(0))
	f.Add("", "", "", "", "", "\n", "\x00", int32(-1), int64(-1), int32(1e9))
	f.Fuzz(func(t *testing.T, cluster, address, region, zone, subZone, reason, author string, to int32, seconds int64, nanos int32) {
		o, err := NewControl(&switchboard{}).requestedOverride(t.Context(), &hdsdv1.SetOverrideRequest{
			Cluster: cluster, Address: address, Locality: &corev3.Locality{Region: region, Zone: zone, SubZone: subZone},
			Health: corev3.HealthStatus(to), Reason: reason, Author: author, Duration: &durationpb.Duration{Seconds: seconds, Nanos: nanos},
		})
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Fatal(err)
			}
			return
		}
		if o.Scope == (health.Endpoint{}) || o.Reason == "" || o.Author == "" || !o.Until.After(time.Now().Add(-time.Minute)) ||
			o.Status != health.Draining && o.Status != health.Healthy && o.Status != health.Unhealthy {
			t.Fatalf("taken is %+v", o)
		}
	})
}
