package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

// bare is a coordinator without rows. Its history began at noon. "web" was removed a minute later.
type bare struct {
	hdsdv1.UnimplementedQueryServer
}

func (bare) ListEndpoints(_ context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	answer := &hdsdv1.ListEndpointsResponse{}
	if asOf := r.GetAsOf(); asOf != nil && asOf.AsTime().Before(noon) {
		answer.Endpoints = []*hdsdv1.Endpoint{{Cluster: "web", Address: "10.0.0.1:80", Reason: "the history began later"}}
		answer.HistoryBegins = timestamppb.New(noon)
	}
	return answer, nil
}

func (bare) ListTransitions(context.Context, *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	return &hdsdv1.ListTransitionsResponse{}, nil
}

func (bare) ListAvailability(_ context.Context, r *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	if end := r.GetEndTime(); end != nil && end.AsTime().Before(noon) {
		return &hdsdv1.ListAvailabilityResponse{Availability: []*hdsdv1.Availability{{Cluster: "web", Address: "10.0.0.1:80", UnknownSeconds: 60}}}, nil
	}
	return &hdsdv1.ListAvailabilityResponse{}, nil
}

func (bare) ListClusters(_ context.Context, r *hdsdv1.ListClustersRequest) (*hdsdv1.ListClustersResponse, error) {
	switch r.GetCluster() {
	case "web":
		return &hdsdv1.ListClustersResponse{Removed: &hdsdv1.Removal{Time: timestamppb.New(noon.Add(time.Minute)), Text: "no longer in source local; it had 3 endpoints"}}, nil
	case "unseen":
		return &hdsdv1.ListClustersResponse{Removed: &hdsdv1.Removal{}}, nil
	case "idle":
		return &hdsdv1.ListClustersResponse{Clusters: []*hdsdv1.Cluster{{Name: "idle", NoEndpointsReason: "its assignment is empty"}}}, nil
	}
	return &hdsdv1.ListClustersResponse{}, nil
}

func (bare) ListCheckers(context.Context, *hdsdv1.ListCheckersRequest) (*hdsdv1.ListCheckersResponse, error) {
	return &hdsdv1.ListCheckersResponse{}, nil
}

func (bare) ListClients(context.Context, *hdsdv1.ListClientsRequest) (*hdsdv1.ListClientsResponse, error) {
	return &hdsdv1.ListClientsResponse{}, nil
}

func (bare) ListIncidents(context.Context, *hdsdv1.ListIncidentsRequest) (*hdsdv1.ListIncidentsResponse, error) {
	return &hdsdv1.ListIncidentsResponse{}, nil
}

func (bare) ListEvents(context.Context, *hdsdv1.ListEventsRequest) (*hdsdv1.ListEventsResponse, error) {
	return &hdsdv1.ListEventsResponse{}, nil
}

func (bare) GetStatus(context.Context, *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	return &hdsdv1.GetStatusResponse{History: &hdsdv1.GetStatusResponse_History{Oldest: timestamppb.New(noon)}}, nil
}

// bareControl has no overrides, receivers, sources or audit entries, and knows no cluster.
type bareControl struct {
	hdsdv1.UnimplementedControlServer
}

func (bareControl) SetOverride(_ context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.SetOverrideResponse, error) {
	return nil, unknownCluster(r.GetCluster())
}

func (bareControl) PreviewOverride(_ context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.PreviewOverrideResponse, error) {
	return nil, unknownCluster(r.GetCluster())
}

func (bareControl) GetFreeze(context.Context, *hdsdv1.GetFreezeRequest) (*hdsdv1.FreezeState, error) {
	return &hdsdv1.FreezeState{}, nil
}

func (bareControl) ListAudit(context.Context, *hdsdv1.ListAuditRequest) (*hdsdv1.ListAuditResponse, error) {
	return &hdsdv1.ListAuditResponse{}, nil
}

func (bareControl) ListOverrides(context.Context, *hdsdv1.ListOverridesRequest) (*hdsdv1.ListOverridesResponse, error) {
	return &hdsdv1.ListOverridesResponse{}, nil
}

func (bareControl) ListReceivers(context.Context, *hdsdv1.ListReceiversRequest) (*hdsdv1.ListReceiversResponse, error) {
	return &hdsdv1.ListReceiversResponse{}, nil
}

func (bareControl) ListSources(context.Context, *hdsdv1.ListSourcesRequest) (*hdsdv1.ListSourcesResponse, error) {
	return &hdsdv1.ListSourcesResponse{}, nil
}

func serveBare(t *testing.T) (address string) {
	t.Helper()
	return serveOn(t, func(server *grpc.Server) {
		hdsdv1.RegisterQueryServer(server, bare{})
		hdsdv1.RegisterControlServer(server, bareControl{})
	})
}

// TestEmptyTablesSayWhy: a table without rows says why, or which flags leave all rows out. JSON and
// CSV, which programs read, have no such text.
func TestEmptyTablesSayWhy(t *testing.T) {
	address := serveBare(t)
	const begins = "the history begins at 2026-01-02T12:00:00Z"
	for args, want := range map[string]string{
		"endpoints":                             "no endpoints: no source has any; 'hdsd source list' shows the sources, 'hdsd clusters' why one has none",
		"endpoints --health TIMEOUT":            "no endpoints with --health TIMEOUT",
		"endpoints idle":                        "idle has no endpoints: its assignment is empty",
		"endpoints --unhealthy --locality eu/a": "no endpoints with --locality eu/a --unhealthy",
		"clusters":                              "no clusters: no source has any; 'hdsd source list' shows the sources",
		"clusters --unhealthy":                  "no clusters with --unhealthy",
		"checkers":                              "no checkers: none is connected, and none was lost lately; 'hdsd bootstrap checker' prints the configuration of an Envoy that is one",
		"checkers --locality eu":                "no checkers with --locality eu",
		"clients":                               "no clients: nobody is connected; 'hdsd bootstrap client' prints the configuration of an Envoy that is one",
		"history":                               "no changes; " + begins,
		"history web --since 1h":                "no cluster \"web\" any more: it was removed at 2026-01-02T12:01:00Z",
		"history --until 2026-01-01":            "no changes with --until 2026-01-01; " + begins,
		"history --kind checker":                "no events with --kind checker; " + begins,
		"history --kind all":                    "no events and changes with --kind all; " + begins,
		"availability":                          "no endpoints; " + begins,
		"incidents":                             "no incidents; " + begins,
		"incidents --open":                      "no incidents with --open; " + begins,
		"audit":                                 "no changes by operators: nobody has made one that is kept",
		"audit --since 1h":                      "no changes by operators with --since 1h",
		"override list":                         "no overrides: votes decide everywhere",
		"notify list":                           "no receivers: 'notify' in the configuration names them",
		"source list":                           "no sources: 'sources' in the configuration names them",
	} {
		ask := append(strings.Fields(args), "--server", address)
		status, out, errors := hdsd(t, ask...)
		for line := range strings.Lines(errors) {
			if exceeds := table.TextWidth(strings.TrimSuffix(line, "\n")) > 80; exceeds && args != "history web --since 1h" {
				t.Errorf("%s: longer than 80: %s", args, line)
			}
		}
		errors = strings.ReplaceAll(errors, "\n      ", " ")
		if status != exitDone || !strings.HasPrefix(errors, "hdsd: "+want) || strings.Count(errors, "\n") != 1 || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q, %q, want %q", args, status, out, errors, want)
		}
		if args == "history web --since 1h" || args == "endpoints idle" {
			continue // these say so in each format
		}
		if status, _, errors := hdsd(t, append(ask, "-o", "json")...); status != exitDone || errors != "" {
			t.Errorf("%s -o json: exit status %d, %q", args, status, errors)
		}
	}
	_, out, _ := hdsd(t, "top", "--server", address)
	for _, want := range []string{"no changes; " + begins, "no outages", "no votes"} {
		if !strings.Contains(out, want) {
			t.Errorf("top does not say %q:\n%s", want, out)
		}
	}
}

// TestBeforeTheHistory: a question about a time before the history fails.
func TestBeforeTheHistory(t *testing.T) {
	address := serveBare(t)
	for _, args := range []string{"endpoints --as-of 2026-01-01", "endpoints web --as-of 2026-01-01", "availability --until 2026-01-01", "availability --by cluster --until 2026-01-01"} {
		for _, format := range []string{"table", "json", "csv"} {
			status, out, errors := hdsd(t, append(strings.Fields(args), "--server", address, "-o", format)...)
			if status != exitFailed || strings.Contains(out, "10.0.0.1") || !strings.Contains(errors, "2026-01-01: the history begins later, at 2026-01-02T12:00:00Z") {
				t.Errorf("%s -o %s: exit status %d, %q, %q", args, format, status, out, errors)
			}
		}
	}
}

// TestRemovedCluster: commands about the present fail, and say when the cluster was removed.
func TestRemovedCluster(t *testing.T) {
	address := serveBare(t)
	const web = "no cluster \"web\" any more: it was removed at 2026-01-02T12:01:00Z (4m07s ago), no longer in source local; it had 3 endpoints; its past: hdsd history web\n"
	const unseen = "no source has the cluster \"unseen\" now, and when it was removed is not recorded; its past: hdsd history unseen\n"
	for args, want := range map[string]string{
		"endpoints web": web, "endpoints web 10.0.0.1:80": web, "endpoints web --unhealthy": web, "describe cluster web": web, "describe endpoint web 10.0.0.1:80": web,
		"endpoints unseen": unseen, "describe cluster unseen": unseen,
		"override drain web --reason x": web, "override unhealthy web 10.0.0.1:80 --reason x": web, "override drain unseen --reason x": unseen,
	} {
		for _, format := range []string{"table", "json"} {
			ask := append(strings.Fields(args), "--server", address)
			if !strings.HasPrefix(args, "override") {
				ask = append(ask, "-o", format)
			}
			status, out, errors := hdsd(t, ask...)
			if status != exitFailed || out != "" || errors != "hdsd: "+want {
				t.Errorf("%s -o %s: exit status %d, %q, %q", args, format, status, out, errors)
			}
		}
	}
}
