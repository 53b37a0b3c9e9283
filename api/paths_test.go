package api_test

import (
	"net/http"
	"testing"

	"hdsd/api"
)

// TestPathsHaveThePromisedShape in JSON.
func TestPathsHaveThePromisedShape(t *testing.T) {
	f := &fleet{paths: []api.Path{{From: "eu/a", To: "eu/b", Votes: 9, Downs: 8, Contradicted: 7, CutReason: "why"}}}
	code, _, text := get(t, f, "/v1/paths")
	if want := `{"paths":[{"from":"eu/a","to":"eu/b","votes":9,"downs":8,"contradicted":7,"cutReason":"why"}]}`; code != http.StatusOK || text != want {
		t.Errorf("%d %s\nwant %s", code, text, want)
	}
}
