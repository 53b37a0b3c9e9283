package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestAWatchByClusterIsAskedFor by=cluster, in any case, and by nothing else.
func TestAWatchByClusterIsAskedFor(t *testing.T) {
	for by, code := range map[string]int{"cluster": http.StatusOK, "CLUSTER": http.StatusOK, "zone": http.StatusBadRequest} {
		f := &fleet{n: 1, end: api.ErrStopping}
		handler, err := api.NewService(f).Handler()
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/watch?by="+by, nil))
		if answer.Code != code || code == http.StatusOK && f.watches[0] != (api.WatchQuery{ByCluster: true}) || code != http.StatusOK && !strings.Contains(answer.Body.String(), `by: \"zone\" is not cluster`) {
			t.Errorf("by=%s: %d, %+v: %s", by, answer.Code, f.watches, answer.Body)
		}
	}
}

// TestChangedClustersAreShown in the JSON of /v1/clusters, and as a message.
func TestChangedClustersAreShown(t *testing.T) {
	e := &api.Event{Clusters: &api.ClusterChanges{Clusters: []api.Cluster{{Name: "web", Endpoints: 2, HealthCounts: api.HealthCounts{Unhealthy: 1}}}, More: true}, Token: "t"}
	text, err := e.Text()
	if err != nil {
		t.Fatal(err)
	}
	data, framed := strings.CutPrefix(string(text), "event: clusters\nid: t\ndata: ")
	var shown struct {
		Clusters []struct {
			Name                 string
			Endpoints, Unhealthy int
		}
		More bool
	}
	if err := json.Unmarshal([]byte(data), &shown); err != nil || !framed || len(shown.Clusters) != 1 || shown.Clusters[0].Name != "web" || shown.Clusters[0].Unhealthy != 1 || !shown.More {
		t.Errorf("%s: %v", text, err)
	}
	message, err := e.Message()
	var got hdsdv1.WatchResponse
	if err == nil {
		err = proto.Unmarshal(message, &got)
	}
	if err != nil || got.GetToken() != "t" || got.GetClusters().GetClusters()[0].GetName() != "web" || !got.GetClusters().GetMore() {
		t.Errorf("%v, %v", &got, err)
	}
}
