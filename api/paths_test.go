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
	if want := `{"paths":[{"from":"eu/a","to":"eu/b","votes":9,"downs":8,"contradicted":7,"cutReason":"why"}],"nextPageToken":""}`; code != http.StatusOK || text != want {
		t.Errorf("%d %s\nwant %s", code, text, want)
	}
}

// TestPathsComePageByPage: each once, in order, also between zones whose names begin alike.
func TestPathsComePageByPage(t *testing.T) {
	f := &fleet{paths: []api.Path{{From: "a", To: "b"}, {From: "a", To: "b/c"}, {From: "a/b", To: "a"}, {From: "b", To: "a"}, {From: "b", To: "c"}}}
	got, token := "", ""
	for range len(f.paths) {
		_, body, text := get(t, f, "/v1/paths?pageSize=2&pageToken="+token)
		for _, one := range body["paths"].([]any) {
			path := one.(map[string]any)
			got += path["from"].(string) + ">" + path["to"].(string) + " "
		}
		if token = body["nextPageToken"].(string); token == "" {
			break
		}
		if len(body["paths"].([]any)) != 2 {
			t.Errorf("a page of two: %s", text)
		}
	}
	if want := "a>b a>b/c a/b>a b>a b>c "; got != want || token != "" {
		t.Errorf("%s, then %q; want %s", got, token, want)
	}
}
