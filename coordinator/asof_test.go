package coordinator_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// flapped runs a site whose one endpoint became healthy, then unhealthy, and
// gives both transitions.
func flapped(t *testing.T, cluster string) (s *site, address string, seen []*hdsdv1.Transition) {
	address, status := upstream(t)
	s = newSite(t, t.TempDir(), quick, static(cluster, address))
	s.ready()
	s.checker("c1")
	s.eventually("a healthy endpoint", func() bool { return s.healthOf(cluster, address) == "HEALTHY" })
	status.Store(http.StatusServiceUnavailable)
	query := hdsdv1.NewQueryClient(s.dial())
	s.eventually("two transitions", func() bool {
		answer, err := query.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{})
		seen = answer.GetTransitions()
		return err == nil && len(seen) == 2
	})
	return s, address, seen
}

func TestQueriesOfThePast(t *testing.T) {
	t.Parallel()
	s, address, seen := flapped(t, "web")
	query := hdsdv1.NewQueryClient(s.dial())
	up, down := seen[0].GetTime().AsTime(), seen[1].GetTime().AsTime()
	held := func(cluster string, at time.Time) *hdsdv1.Endpoint {
		t.Helper()
		answer, err := query.ListEndpoints(t.Context(), &hdsdv1.ListEndpointsRequest{Cluster: cluster, AsOf: timestamppb.New(at)})
		if err != nil || len(answer.GetEndpoints()) != 1 || answer.GetEndpoints()[0].GetAddress() != address {
			t.Fatalf("as of %v: %v, %v", at, answer, err)
		}
		if early := at.Before(up); early != (answer.GetHistoryBegins() != nil) || early && !answer.GetHistoryBegins().AsTime().After(at) {
			t.Errorf("as of %v, the history begins at %v", at, answer.GetHistoryBegins().AsTime())
		}
		return answer.GetEndpoints()[0]
	}
	ask := func(last *hdsdv1.Transition) {
		t.Helper()
		if e := held("", up.Add(-time.Hour)); e.GetHealth() != corev3.HealthStatus_UNKNOWN || !strings.Contains(e.GetReason(), "history began later") {
			t.Errorf("before all: %v", e)
		}
		for at, want := range map[time.Time]*hdsdv1.Transition{up: seen[0], down.Add(-1): seen[0], down: seen[1], time.Now(): last} {
			e := held("web", at)
			if e.GetHealth() != want.GetTo() || e.GetReason() != want.GetReason() || !e.GetSince().AsTime().Equal(want.GetTime().AsTime()) ||
				len(e.GetObservations()) != len(want.GetObservations()) {
				t.Errorf("as of %v: %v", at, e)
			}
		}
		if code, text := s.get("/v1/endpoints?health=HEALTHY&asOf=" + up.Format(time.RFC3339Nano)); code != http.StatusOK || !strings.Contains(text, address) {
			t.Errorf("filtered: %d %s", code, text)
		}
		if code, text := s.get("/v1/endpoints?health=HEALTHY&asOf=" + down.Format(time.RFC3339Nano)); code != http.StatusOK || strings.Contains(text, address) {
			t.Errorf("filtered away: %d %s", code, text)
		}
		spent, err := query.ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{
			Cluster: "web", StartTime: timestamppb.New(up.Add(-time.Second)), EndTime: timestamppb.New(down),
		})
		if err != nil || len(spent.GetAvailability()) != 1 {
			t.Fatal(spent, err)
		}
		healthy := down.Sub(up).Seconds()
		if a := spent.GetAvailability()[0]; a.GetHealthySeconds() != healthy || a.GetHealthyRatio() != 1 || a.GetTransitions() != 1 ||
			a.GetUnknownSeconds()+a.GetHealthySeconds() < 0.999+healthy {
			t.Errorf("until it went down, %v s later: %v", healthy, a)
		}
		spent, err = query.ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{StartTime: timestamppb.New(down), EndTime: timestamppb.New(down.Add(1e6 * time.Hour))})
		if err != nil || len(spent.GetAvailability()) != 1 {
			t.Fatal(spent, err)
		}
		if a := spent.GetAvailability()[0]; a.GetUnhealthySeconds() <= 0 || a.GetUnhealthySeconds() > time.Since(down).Seconds() || a.GetHealthySeconds() != 0 || a.HealthyRatio == nil {
			t.Errorf("since it went down: %v", a)
		}
	}
	ask(seen[1])

	// A cluster that is gone is still known, and so is what it was. It is
	// nothing any more.
	watched := s.events(t.Context(), "/v1/watch?cluster=web", "")
	s.expect(watched, "endpoint")
	s.expect(watched, "synced")
	move(t, s.dir, "clusters.yaml", "resources:\n"+static("other"))
	if e := s.expect(watched, "transition"); e.data.Address != address || e.data.From != "UNHEALTHY" || e.data.To != "UNKNOWN" {
		t.Errorf("watched %+v", e)
	}
	answer, err := query.ListTransitions(t.Context(), &hdsdv1.ListTransitionsRequest{Cluster: "web", NewestFirst: true})
	if err != nil || len(answer.GetTransitions()) != 3 || answer.GetTransitions()[0].GetReason() != "in no source any more" {
		t.Fatal(answer, err)
	}
	clusters, err := query.ListClusters(t.Context(), &hdsdv1.ListClustersRequest{Cluster: "web"})
	if removed := clusters.GetRemoved(); err != nil || len(clusters.GetClusters()) > 0 || removed.GetTime() == nil || !strings.Contains(removed.GetText(), "no longer in source local") {
		t.Errorf("of a removed cluster: %v, %v", clusters, err)
	}
	gone := answer.GetTransitions()[0]
	ask(gone)
	spent, err := query.ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{StartTime: timestamppb.New(down)})
	if err != nil || len(spent.GetAvailability()) != 1 || spent.GetAvailability()[0].GetUnhealthySeconds() != gone.GetTime().AsTime().Sub(down).Seconds() {
		t.Errorf("it is still said to be down: %v, %v", spent, err)
	}
	for _, path := range []string{"/v1/availability?cluster=nowhere", "/v1/endpoints?cluster=nowhere&asOf=" + url.QueryEscape(up.Format(time.RFC3339))} {
		if code, text := s.get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestClientsList(t *testing.T) {
	t.Parallel()
	address, _ := upstream(t)
	s := newSite(t, t.TempDir(), quick, static("web", address))
	s.ready()
	s.checker("c1")
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial()).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "dp-1"}, TypeUrl: resourcev3.ClusterType}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: resourcev3.ClusterType, VersionInfo: answer.GetVersionInfo(), ResponseNonce: answer.GetNonce()}); err != nil {
		t.Fatal(err)
	}
	query := hdsdv1.NewQueryClient(s.dial())
	s.eventually("both clients to have all", func() bool {
		answer, err := query.ListClients(t.Context(), &hdsdv1.ListClientsRequest{})
		if err != nil || len(answer.GetClients()) != 2 {
			return false
		}
		checker, subscriber := answer.GetClients()[0], answer.GetClients()[1]
		return checker.GetId() == "c1" && checker.GetKind() == "checker" && checker.GetConnected() && checker.GetSynced() == 1 &&
			strings.HasSuffix(checker.GetTypeUrl(), ".HealthCheckSpecifier") && checker.GetLastAck() != nil &&
			subscriber.GetId() == "dp-1" && subscriber.GetKind() == "subscriber" && subscriber.GetTypeUrl() == resourcev3.ClusterType &&
			subscriber.GetSynced() == 1 && subscriber.GetError() == 0 && subscriber.GetLastAck() != nil
	})
}
