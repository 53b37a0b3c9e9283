package api_test

import (
	"net/http"
	"strings"
	"testing"

	"hdsd/api"
	"hdsd/health"
)

// TestFilters reach the backend, and bind page tokens.
func TestFilters(t *testing.T) {
	want := health.Filter{Unhealthy: true, Locality: health.Locality{Region: "eu", Zone: "a"}}
	const query = "?unhealthy=true&locality=eu/a"
	f := &fleet{n: 5}
	for _, path := range []string{"/v1/endpoints", "/v1/transitions", "/v1/clusters"} {
		if code, _, text := get(t, f, path+query); code != http.StatusOK {
			t.Errorf("%s: %d, %s", path, code, text)
		}
		if code, _, text := get(t, f, path+"?locality=a/b/c/d"); code != http.StatusBadRequest || !strings.Contains(text, "REGION/ZONE/SUB-ZONE") {
			t.Errorf("%s with four parts: %d, %s", path, code, text)
		}
	}
	if f.asked[0].Filter != want || f.queries[0].Filter != want || f.clusters[0].Filter != want {
		t.Errorf("asked %+v, %+v, %+v", f.asked, f.queries, f.clusters)
	}
	_, body, _ := get(t, f, "/v1/endpoints?pageSize=1&unhealthy=true")
	token := body["nextPageToken"].(string)
	for query, want := range map[string]int{"unhealthy=true": http.StatusOK, "unhealthy=false": http.StatusBadRequest, "unhealthy=true&locality=eu": http.StatusBadRequest} {
		if code, _, text := get(t, f, "/v1/endpoints?pageSize=1&"+query+"&pageToken="+token); code != want {
			t.Errorf("the token with %s: %d, %s", query, code, text)
		}
	}
	_, _, _ = get(t, f, "/v1/clients?cluster=web")
	_, _, _ = get(t, f, "/v1/clusters?cluster=web")
	if f.clients[0] != "web" || f.clusters[1].Cluster != "web" {
		t.Errorf("asked for clients of %q and cluster %+v", f.clients, f.clusters[1])
	}
	var none api.ClusterQuery
	if _, _, _ = get(t, f, "/v1/clusters"); f.clusters[2].Filter != none.Filter {
		t.Errorf("asked %+v", f.clusters[2])
	}
}
