package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/api"
	"hdsd/health"
)

// TestTheOverviewHasThePromisedShape: zones once, and cells by their place.
func TestTheOverviewHasThePromisedShape(t *testing.T) {
	a, b := health.Locality{Region: "eu", Zone: "a"}, health.Locality{Region: "eu", Zone: "b"}
	f := &fleet{overview: api.Overview{Further: 3, Clusters: []api.ClusterOverview{
		{Cluster: "web", State: "HALF_DOWN", Endpoints: 4, Down: 2, Zones: []api.ZoneOverview{{Zone: b, Endpoints: 4, Down: 2}}},
		{Cluster: "db", State: "OK", Endpoints: 3, Zones: []api.ZoneOverview{{Endpoints: 1}, {Zone: a, Endpoints: 2}}},
	}}}
	code, _, text := get(t, f, "/v1/overview")
	want := `{"zones":[{"region":"","zone":"","subZone":""},{"region":"eu","zone":"a","subZone":""},{"region":"eu","zone":"b","subZone":""}],` +
		`"clusters":[{"cluster":"web","state":"HALF_DOWN","endpoints":4,"down":2,"cells":[{"zone":2,"endpoints":4,"down":2}]},` +
		`{"cluster":"db","state":"OK","endpoints":3,"down":0,"cells":[{"zone":0,"endpoints":1,"down":0},{"zone":1,"endpoints":2,"down":0}]}],"further":3}`
	if got := strings.ReplaceAll(text, " ", ""); code != http.StatusOK || got != want {
		t.Errorf("%d %s\nwant %s", code, got, want)
	}
	if _, body, _ := get(t, f, "/v1/overview?limit=1"); len(body["clusters"].([]any)) != 1 {
		t.Errorf("of one: %v", body)
	}
	for _, bad := range []string{"-1", "1001", "x"} {
		if code, _, text := get(t, f, "/v1/overview?limit="+bad); code != http.StatusBadRequest {
			t.Errorf("limit=%s: %d %s", bad, code, text)
		}
	}
}
