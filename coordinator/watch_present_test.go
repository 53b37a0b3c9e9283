package coordinator_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// TestWatchBeginsWithPresentState covers published health that differs from the verdict, and overrides in
// place of the votes.
func TestWatchBeginsWithPresentState(t *testing.T) {
	t.Parallel()
	shadowed, _ := upstream(t)
	address, _ := upstream(t)
	s := newSite(t, t.TempDir(), quick+"policies: [{cluster_name_glob: shy, mode: SHADOW}]\n", static("web", address)+static("shy", shadowed))
	s.ready()
	s.checker("c1")
	query := hdsdv1.NewQueryClient(s.dial())
	same := func(what string, as func(*hdsdv1.Endpoint) bool) {
		t.Helper()
		s.eventually(what, func() bool {
			listed, err := query.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := query.Watch(t.Context(), &hdsdv1.WatchRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range listed.GetEndpoints() {
				got, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got.GetEndpoint(), protocmp.Transform()); diff != "" {
					t.Log(what, diff) // it may have changed in between
					return false
				}
			}
			return as(listed.GetEndpoints()[0]) && as(listed.GetEndpoints()[1])
		})
	}
	same("both to be healthy", func(e *hdsdv1.Endpoint) bool {
		return e.GetHealth().String() == "HEALTHY" && (e.Published != nil) == (e.GetCluster() == "shy")
	})
	s.change(http.MethodPost, "/v1/overrides", `{"cluster": "web", "health": "DRAINING", "reason": "kernel"}`)
	same("web to be drained", func(e *hdsdv1.Endpoint) bool { return (e.Override != nil) == (e.GetCluster() == "web") })
	s.change(http.MethodDelete, "/v1/overrides?cluster=web", "") // it would stay in force
	s.change(http.MethodPost, "/v1/freeze", `{"reason": "moving"}`)
	same("both to be published as they come in", func(e *hdsdv1.Endpoint) bool { return e.Published != nil })
}
