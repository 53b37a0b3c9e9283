package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/eds"
	"hdsd/publish"
)

// poll polls the assignment of web by REST.
func (w *watched) poll(says string) {
	w.Helper()
	recorder := httptest.NewRecorder()
	body := fmt.Sprintf(`{"node":{"id":"dp"},"resource_names":["web"]%s}`, says)
	w.eds.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, eds.EndpointsPath, strings.NewReader(body)))
	if recorder.Code != http.StatusOK && recorder.Code != http.StatusNotModified {
		w.Fatal(recorder.Code, recorder.Body)
	}
}

func TestClientStatusOfPolls(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		const head, assignment, refused = "dp dp/REST\n  ClusterLoadAssignment web ", "  0 clusters, 1 assignments: ", ` "error_detail":{"message":"no"}`
		given := func() string { return w.eds.Clients(nil)[0].Poll.Served }
		w.poll("")
		only := func(want string) int {
			return len(w.eds.Clients(func(name string) bool { return name == want }))
		}
		if web, api := only("web"), only("api"); web != 1 || api != 0 {
			t.Errorf("%d clients poll web, %d poll api", web, api)
		}
		w.wants("given", head+"STALE REQUESTED body\n"+assignment+"STALE")
		first := given()
		w.poll(fmt.Sprintf(`,"version_info":%q`, first))
		w.wants("taken", head+"SYNCED ACKED body\n"+assignment+"SYNCED")
		w.step(nil, "change", 1)
		w.wants("changed", head+"STALE ACKED\n  0 clusters, 0 assignments: STALE")
		w.poll(fmt.Sprintf(`,"version_info":%q`, first))
		w.poll(fmt.Sprintf(`,"version_info":%q,"response_nonce":%q,`+refused, first, given()))
		w.wants("refused", head+"ERROR NACKED body refused: no (this)\n"+assignment+"ERROR")
		time.Sleep(5 * time.Minute)
		w.wants("forgotten", "")
		_, err := endpointservice.NewEndpointDiscoveryServiceClient(w.conn).FetchEndpoints(t.Context(), &discoveryv3.DiscoveryRequest{
			Node: &corev3.Node{Id: "dp"}, ResourceNames: []string{"web"},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.wants("by gRPC", "dp dp/FETCH\n  ClusterLoadAssignment web STALE REQUESTED body\n"+assignment+"STALE")
	})
}

func TestPollsOfOneSubscriberAreOneClient(t *testing.T) {
	at := time.Unix(1000, 0)
	poll := func(by string, seconds int) *publish.Poll {
		return &publish.Poll{Protocol: by, Time: at.Add(time.Duration(seconds) * time.Second), Served: by + "-2", Held: by + "-1"}
	}
	got := subscribers([]publish.Client{
		{ID: "dp", TypeURL: "a", Resources: 1, Synced: 1, Poll: poll("REST", 1)},
		{ID: "dp", TypeURL: "a", Resources: 1, Stale: 1, Poll: poll("FETCH", 2)},
		{ID: "dp", TypeURL: "a", Resources: 1, Error: 1, LastError: "no", Poll: poll("REST", 0)},
		{ID: "dp", Stream: 1, TypeURL: "a", Resources: 1, Synced: 1},
	})
	want := []api.Client{{
		ID: "dp", Kind: "subscriber", TypeURL: "a", Connected: true, Resources: 4, Synced: 2, Stale: 1, Error: 1, LastError: "no",
		Poll: &api.Poll{Protocol: "FETCH", Time: at.Add(2 * time.Second), Served: "FETCH-2", Held: "FETCH-1"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStreamsOfOneSubscriberAreOneClient(t *testing.T) {
	at := time.Unix(1000, 0)
	got := subscribers([]publish.Client{
		{ID: "dp", Stream: 1, TypeURL: "a", Resources: 3, Synced: 2, Stale: 1, LastAck: at},
		{ID: "dp", Stream: 1, TypeURL: "b", Resources: 1, Synced: 1},
		{ID: "dp", Stream: 2, TypeURL: "a", Resources: 2, Error: 2, LastAck: at.Add(-time.Second), LastError: "no"},
	})
	want := []api.Client{
		{ID: "dp", Kind: "subscriber", TypeURL: "a", Connected: true, Resources: 5, Synced: 2, Stale: 1, Error: 2, LastAck: at, LastError: "no"},
		{ID: "dp", Kind: "subscriber", TypeURL: "b", Connected: true, Resources: 1, Synced: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
