package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/api"
)

// TestStatusHasThePromisedShape: all fields are there, zeros included.
func TestStatusHasThePromisedShape(t *testing.T) {
	f := &fleet{status: api.Status{
		Version: "1.2.3", Shadow: true, Frozen: true, NotReady: "starting", Clusters: api.ClusterCounts{OK: 90, SomeDown: 3, AllDown: 1},
		Endpoints: api.EndpointCounts{HealthCounts: api.HealthCounts{Healthy: 988, Unhealthy: 10}, Held: 2, Voters: [4]int{2, 0, 6, 990}}, Checkers: api.CheckerCounts{Connected: 6, Lost: 1},
		Attention: []api.Attention{{Kind: "CLUSTER_DOWN", Cluster: "web", Text: "cluster web: 4 of 4 endpoints down", Command: "hdsd endpoints web", Since: noon}},
		Started:   noon, Sources: []api.SourceState{{Name: "mesh", Clusters: 2, Endpoints: 4, Problem: "away"}}, Planes: api.PlaneCounts{Synced: 3, Behind: 1},
		Zones: []api.CheckersOfZone{{Zone: "eu/a", Connected: 2, Troubled: 1}}, History: api.HistoryState{Oldest: noon, Bytes: 4096, Pending: 1},
	}}
	code, _, text := get(t, f, "/v1/status")
	want := `{"version":"1.2.3","ready":false,"notReadyReason":"starting","mode":"SHADOW","frozen":true,` +
		`"clusters":{"ok":90,"someDown":3,"halfDown":0,"allDown":1,"unobserved":0,"noneHealthy":0,"unchecked":0},` +
		`"endpoints":{"healthy":988,"unhealthy":10,"timeout":0,"degraded":0,"draining":0,"unknown":0,"held":2,"voters":[2,0,6,990]},` +
		`"checkers":{"connected":6,"doubted":0,"silent":0,"blind":0,"lost":1},` +
		`"attention":[{"kind":"CLUSTER_DOWN","cluster":"web","zone":"","text":"cluster web: 4 of 4 endpoints down","since":"2026-01-02T12:00:00.345Z","command":"hdsd endpoints web"}],"further":0,` +
		`"started":"2026-01-02T12:00:00.345Z","sources":[{"name":"mesh","clusters":2,"endpoints":4,"problem":"away","broken":false}],"dataPlanes":{"synced":3,"behind":1,"refusing":0},` +
		`"checkersByZone":[{"zone":"eu/a","connected":2,"troubled":1,"lost":0}],"history":{"oldest":"2026-01-02T12:00:00.345Z","bytes":"4096","pending":"1"},"caller":{"identity":"","roles":["CHECKER","DATA_PLANE","VIEWER","OPERATOR","ADMIN"],"operates":["*"]}}`
	if got := strings.ReplaceAll(text, " ", ""); code != http.StatusOK || got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%d %s\nwant %s", code, text, want)
	}
	if _, _, text := get(t, &fleet{}, "/v1/status"); !strings.Contains(strings.ReplaceAll(text, " ", ""), `"ready":true,"notReadyReason":"","mode":"PUBLISH","frozen":false`) || !strings.Contains(text, `"attention":[]`) {
		t.Errorf("all is well: %s", text)
	}
	many := &fleet{status: api.Status{Attention: make([]api.Attention, api.MaxAttention+7)}}
	if _, body, _ := get(t, many, "/v1/status"); len(body["attention"].([]any)) != api.MaxAttention || body["further"] != 7.0 {
		t.Errorf("of %d things %v further ones are told", len(many.status.Attention), body["further"])
	}
	many.status.Further = 5
	if _, body, _ := get(t, many, "/v1/status"); body["further"] != 12.0 {
		t.Errorf("with 5 that are not listed, %v further ones are told", body["further"])
	}
}
