package main

import (
	"context"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

const (
	webVersion = "5f0c27d1e9a8b364"
	webOwn     = "web#" + webVersion
)

// versioned is a coordinator with two versions of a cluster, or only with the first one.
type versioned struct {
	*fake
	names []string
}

func (v *versioned) version(name string) *string {
	if name == webOwn {
		return new(webVersion)
	}
	return nil
}

func (v *versioned) ListClusters(context.Context, *hdsdv1.ListClustersRequest) (*hdsdv1.ListClustersResponse, error) {
	answer := &hdsdv1.ListClustersResponse{}
	for _, name := range v.names {
		answer.Clusters = append(answer.Clusters, &hdsdv1.Cluster{Name: name, Version: v.version(name), Source: "relay", Checked: true, Endpoints: 1, Unhealthy: 1})
	}
	return answer, nil
}

func (v *versioned) ListEndpoints(_ context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	answer := &hdsdv1.ListEndpointsResponse{}
	for _, name := range v.names {
		if r.GetCluster() == webOwn && name != webOwn {
			continue
		}
		answer.Endpoints = append(answer.Endpoints, &hdsdv1.Endpoint{
			Cluster: name, Version: v.version(name), Address: "192.168.100.101:8080", Locality: &corev3.Locality{Region: "eu-central-1", Zone: "eu-central-1a"},
			Health: corev3.HealthStatus_UNHEALTHY, Since: timestamppb.New(noon), Reason: "as " + name, Observations: votes(),
		})
	}
	return answer, nil
}

func (v *versioned) ListTransitions(context.Context, *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	answer := &hdsdv1.ListTransitionsResponse{}
	for _, name := range v.names {
		answer.Transitions = append(answer.Transitions, &hdsdv1.Transition{
			Time: timestamppb.New(noon), Cluster: name, Address: "192.168.100.101:8080", Locality: &corev3.Locality{Region: "eu-central-1", Zone: "eu-central-1a"},
			From: corev3.HealthStatus_HEALTHY, To: corev3.HealthStatus_UNHEALTHY, Reason: "3 of 3 checkers say UNHEALTHY", Observations: votes(),
		})
	}
	return answer, nil
}

func (v *versioned) ListAvailability(context.Context, *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	answer := &hdsdv1.ListAvailabilityResponse{}
	for _, name := range v.names {
		answer.Availability = append(answer.Availability, &hdsdv1.Availability{Cluster: name, Address: "192.168.100.101:8080", Locality: &corev3.Locality{}, UnhealthySeconds: 60, HealthyRatio: new(0.0)})
	}
	return answer, nil
}

func (v *versioned) ListEvents(context.Context, *hdsdv1.ListEventsRequest) (*hdsdv1.ListEventsResponse, error) {
	answer := &hdsdv1.ListEventsResponse{}
	for _, name := range v.names {
		answer.Events = append(answer.Events, &hdsdv1.Event{Time: timestamppb.New(noon), Kind: hdsdv1.Event_CLUSTER_ADDED, Cluster: name, Text: "from source relay, with 1 endpoint"})
	}
	return answer, nil
}

func (v *versioned) GetOverview(context.Context, *hdsdv1.GetOverviewRequest) (*hdsdv1.GetOverviewResponse, error) {
	answer := &hdsdv1.GetOverviewResponse{}
	for _, name := range v.names {
		answer.Clusters = append(answer.Clusters, &hdsdv1.GetOverviewResponse_Row{Cluster: name, Version: v.version(name), State: "ALL_DOWN", Endpoints: 1, Down: 1})
	}
	return answer, nil
}

func (v *versioned) GetStatus(context.Context, *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	return &hdsdv1.GetStatusResponse{Clusters: &hdsdv1.GetStatusResponse_Clusters{AllDown: uint32(len(v.names))}}, nil
}

func (v *versioned) Watch(r *hdsdv1.WatchRequest, stream grpc.ServerStreamingServer[hdsdv1.WatchResponse]) error {
	found, err := v.ListEndpoints(stream.Context(), &hdsdv1.ListEndpointsRequest{Cluster: r.GetCluster()})
	for _, e := range found.GetEndpoints() {
		if err == nil {
			err = stream.Send(&hdsdv1.WatchResponse{Event: &hdsdv1.WatchResponse_Endpoint{Endpoint: e}})
		}
	}
	return err
}

// versionedControl has an override and an entry of the audit for each of some clusters.
type versionedControl struct {
	bareControl
	*versioned
}

func (v versionedControl) ListOverrides(context.Context, *hdsdv1.ListOverridesRequest) (*hdsdv1.ListOverridesResponse, error) {
	answer := &hdsdv1.ListOverridesResponse{}
	for _, name := range v.names {
		answer.Overrides = append(answer.Overrides, &hdsdv1.Override{
			Cluster: name, Version: v.version(name), Address: "192.168.100.101:8080", Health: corev3.HealthStatus_DRAINING, Reason: "kernel", Author: "ann", Since: timestamppb.New(noon), Endpoints: 1,
		})
	}
	return answer, nil
}

func (v versionedControl) ListAudit(context.Context, *hdsdv1.ListAuditRequest) (*hdsdv1.ListAuditResponse, error) {
	answer := &hdsdv1.ListAuditResponse{}
	for _, name := range v.names {
		answer.Entries = append(answer.Entries, &hdsdv1.AuditEntry{Time: timestamppb.New(noon), Author: "ann", Action: "SetOverride", Target: "web 192.168.100.101:8080", Version: v.version(name), Reason: "kernel"})
	}
	return answer, nil
}

// TestTablesNameAClusterAsUsersKnowIt: hdsd's own name for a version is in no table, and in the commands
// to go on with. The version is in a column of its own, where there is one beside the first.
func TestTablesNameAClusterAsUsersKnowIt(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for _, several := range []bool{false, true} {
		v := &versioned{newFake(), []string{"web"}}
		if several {
			v.names = append(v.names, webOwn)
		}
		address := serveOn(t, func(server *grpc.Server) {
			hdsdv1.RegisterQueryServer(server, v)
			hdsdv1.RegisterControlServer(server, versionedControl{versioned: v})
		})
		for args, title := range map[string]string{
			"override list": "VERSION", "override list -o wide": "VERSION", "audit": "VERSION", "clusters": "VERSION", "clusters -o wide": "VERSION", "endpoints": "VERSION", "endpoints web": "VERSION", "endpoints -o wide": "VERSION", "history": "VERSION",
			"history --kind cluster": "web (version " + webVersion + ")", "history --kind all -o wide": "VERSION", "availability": "VERSION", "top": "VERSION", "watch --limit 2": "VERSION",
			"status": "web (version " + webVersion + "): 1 of 1 endpoint down", "describe cluster web": "others       web (version " + webVersion + "): 0 of 1 endpoint healthy, 1",
			"describe endpoint web 192.168.100.101:8080": "192.168.100.101:8080 of cluster web (version " + webVersion + ")",
		} {
			if !several && strings.HasPrefix(args, "watch") {
				args = "watch --limit 1"
			}
			status, out, errors := hdsd(t, append(strings.Fields(args), "--server", address)...)
			if status != exitDone || strings.Contains(out, title) != several {
				t.Errorf("%s, several versions: %t: exit status %d, %s\n%s", args, several, status, errors, out)
			}
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				next := strings.Contains(line, "hdsd describe ") || strings.Contains(line, "hdsd history ")
				if !next && (strings.Contains(line, "web#") && !strings.Contains(line, "as web#") || table.TextWidth(line) > 80) {
					t.Errorf("%s, several versions: %t: shows %q", args, several, line)
				}
			}
		}
		if _, out, _ := hdsd(t, "endpoints", "-o", "json", "--server", address); strings.Contains(out, `"cluster":"`+webOwn+`"`) != several || strings.Contains(out, `"version":"`+webVersion+`"`) != several {
			t.Errorf("programs get %s", out)
		}
	}
}

// TestTheOtherVersionOfACluster is described alone: its endpoints are not those of the first.
func TestTheOtherVersionOfACluster(t *testing.T) {
	v := &versioned{newFake(), []string{"web", webOwn}}
	address := serveOn(t, func(server *grpc.Server) {
		hdsdv1.RegisterQueryServer(server, v)
		hdsdv1.RegisterControlServer(server, bareControl{})
	})
	for name, other := range map[string]string{"web": webOwn, webOwn: "web"} {
		status, out, errors := hdsd(t, "describe", "cluster", name, "--server", address)
		if status != exitDone || !strings.Contains(out, "as "+name+"\n") || strings.Contains(out, "as "+other+"\n") || !strings.Contains(out, "eu-central-1/eu-central-1a: 0 of 1 healthy") {
			t.Errorf("%s: exit status %d, %s\n%s", name, status, errors, out)
		}
	}
}
