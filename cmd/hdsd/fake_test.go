package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 345_000_000, time.UTC)

// fake is a coordinator that knows a few things. It gives pages of at most two.
type fake struct {
	hdsdv1.UnimplementedQueryServer
	endpoints   []*hdsdv1.Endpoint
	failAfter   int // pages; 0: never
	asked       []*hdsdv1.ListEndpointsRequest
	transitions []*hdsdv1.ListTransitionsRequest
	periods     []*hdsdv1.ListAvailabilityRequest
	incidents   []*hdsdv1.ListIncidentsRequest
	events      []*hdsdv1.ListEventsRequest
	changes     func(*hdsdv1.ListTransitionsRequest) *hdsdv1.ListTransitionsResponse // nil: two
	watches     []*hdsdv1.WatchRequest
	described   []string // clusters
	status      *hdsdv1.GetStatusResponse
	replicas    *hdsdv1.ListReplicasResponse // nil: a coordinator alone
	replica     *string                      // of each checker and client; nil: a coordinator alone
	overview    []*hdsdv1.GetOverviewResponse_Row
	stay        bool   // watches do not end by themselves
	gone        string // address of an endpoint that only the history before today knows
}

func newFake() *fake {
	f := &fake{}
	for i, health := range []corev3.HealthStatus{corev3.HealthStatus_HEALTHY, corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_UNKNOWN} {
		e := &hdsdv1.Endpoint{Cluster: "web", Address: fmt.Sprintf("10.0.0.%d:8080", i+1), Locality: &corev3.Locality{Region: "eu", Zone: "a"}, Health: health}
		switch health {
		case corev3.HealthStatus_UNKNOWN:
			e.Reason = "not checked: no checker is connected"
			e.Published, e.PublishedReason = corev3.HealthStatus_DRAINING.Enum(), new("hdsd is frozen: release")
		case corev3.HealthStatus_UNHEALTHY:
			e.Since, e.Reason, e.Observations = timestamppb.New(noon), "2 of 2 believed checkers say UNHEALTHY; checker-3 not believed: warming up", votes()
		default:
			e.Since, e.Reason, e.Hostname = timestamppb.New(noon), "3 of 3 checkers say HEALTHY", new("one.test")
			e.Held, e.HeldSince = true, timestamppb.New(noon.Add(time.Minute))
		}
		f.endpoints = append(f.endpoints, e)
	}
	return f
}

// known reports whether an address is that of an endpoint, or none in particular.
func known(address string) bool { return address == "" || strings.HasSuffix(address, ":8080") }

// has tells the same of today.
func (f *fake) has(address string) bool {
	return known(address) && (address == "" || address != f.gone)
}

// unknownCluster is what hdsd answers about a cluster that it does not know.
func unknownCluster(name string) error {
	answer, err := status.Newf(codes.NotFound, "unknown cluster %q", name).
		WithDetails(&errdetails.ErrorInfo{Reason: reason.UnknownCluster, Domain: reason.Domain})
	if err != nil {
		return err
	}
	return answer.Err()
}

func votes() []*hdsdv1.Observation {
	code := uint32(503)
	return []*hdsdv1.Observation{
		{Checker: "checker-1", Status: corev3.HealthStatus_UNHEALTHY, HttpStatusCode: &code, Time: timestamppb.New(noon)},
		{Checker: "checker-2", Status: corev3.HealthStatus_TIMEOUT, Time: timestamppb.New(noon)},
		{Checker: "checker-3", Status: corev3.HealthStatus_UNHEALTHY, Time: timestamppb.New(noon), Disbelieved: "warming up"},
	}
}

func (f *fake) ListEndpoints(_ context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	if r.GetCluster() == "idle" {
		return &hdsdv1.ListEndpointsResponse{}, nil
	}
	if r.GetCluster() == "db" {
		return &hdsdv1.ListEndpointsResponse{}, nil
	}
	if r.GetCluster() != "" && r.GetCluster() != "web" {
		return nil, unknownCluster(r.GetCluster())
	}
	f.asked = append(f.asked, r)
	if !f.has(r.GetAddress()) {
		return &hdsdv1.ListEndpointsResponse{}, nil
	}
	if f.failAfter > 0 && len(f.asked) > f.failAfter {
		return nil, api.ErrStopping
	}
	at := 0
	if r.GetPageToken() != "" {
		at, _ = strconv.Atoi(r.GetPageToken())
	}
	var all []*hdsdv1.Endpoint
	for _, e := range f.endpoints {
		if (r.GetAddress() == "" || r.GetAddress() == e.GetAddress()) && (!r.GetUnhealthy() || !isUp(e.GetHealth())) &&
			(r.GetLocality() == "" || r.GetLocality() == zoneCell(e.GetLocality())) {
			all = append(all, e)
		}
	}
	end := min(at+2, at+int(r.GetPageSize()), len(all))
	answer := &hdsdv1.ListEndpointsResponse{Endpoints: all[min(at, end):end]}
	if end < len(all) {
		answer.NextPageToken = strconv.Itoa(end)
	}
	return answer, nil
}

func (f *fake) ListTransitions(_ context.Context, r *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	f.transitions = append(f.transitions, r)
	if f.changes != nil {
		return f.changes(r), nil
	}
	if !known(r.GetAddress()) || !f.has(r.GetAddress()) && r.GetStartTime() != nil {
		return &hdsdv1.ListTransitionsResponse{}, nil
	}
	return &hdsdv1.ListTransitionsResponse{Transitions: []*hdsdv1.Transition{
		{
			Time: timestamppb.New(noon.Add(-time.Hour)), Cluster: "web", Address: "10.0.0.2:8080", Locality: &corev3.Locality{},
			From: corev3.HealthStatus_UNKNOWN, To: corev3.HealthStatus_HEALTHY, Reason: "3 of 3 checkers say HEALTHY",
		},
		{
			Time: timestamppb.New(noon), Cluster: "web", Address: "10.0.0.2:8080", Locality: &corev3.Locality{},
			From: corev3.HealthStatus_HEALTHY, To: corev3.HealthStatus_UNHEALTHY, Reason: "2 of 2 believed checkers say UNHEALTHY", Observations: votes(),
		},
	}}, nil
}

func (f *fake) ListClusters(_ context.Context, r *hdsdv1.ListClustersRequest) (*hdsdv1.ListClustersResponse, error) {
	all := someClusters()
	if r.GetCluster() == "" {
		return all, nil
	}
	f.described = append(f.described, r.GetCluster())
	for _, k := range all.GetClusters() {
		if k.GetName() != r.GetCluster() {
			continue
		}
		k.HealthChecks, _ = someChecks()
		return &hdsdv1.ListClustersResponse{Clusters: []*hdsdv1.Cluster{k}}, nil
	}
	if r.GetCluster() == "past" {
		return &hdsdv1.ListClustersResponse{}, nil
	}
	return nil, unknownCluster(r.GetCluster())
}

// someChecks are health checks as the coordinator shows them.
func someChecks() (all []*structpb.Struct, err error) {
	for _, check := range []map[string]any{
		{"timeout": "1s", "interval": "0.500s", "unhealthyThreshold": 2, "healthyThreshold": 1, "httpHealthCheck": map[string]any{"path": "/healthz", "expectedStatuses": []any{map[string]any{"start": "200", "end": "300"}}}},
		{"timeout": "1s", "interval": "5s", "tcpHealthCheck": map[string]any{}},
	} {
		s, err := structpb.NewStruct(check)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func someClusters() *hdsdv1.ListClustersResponse {
	return &hdsdv1.ListClustersResponse{Clusters: []*hdsdv1.Cluster{
		{Name: "db", Source: "local", RejectedReason: "connect_timeout: is below 0", Checked: true, Endpoints: 12, Healthy: 9, Unhealthy: 1, Unknown: 2, Overridden: 2, Quarantined: []*hdsdv1.Quarantine{
			{Address: "db.internal:5432", Reason: "endpoint.address: is a hostname; give the IP address"},
			{Address: "10.0.0.9:5432", Reason: "not checked: no checker is connected"},
		}},
		{Name: "idle", Source: "mesh", NoEndpointsReason: `no source has its ClusterLoadAssignment "idle" (mesh: it has none)`},
		{Name: "plain", Source: "local", Endpoints: 3, Unknown: 3, Mode: hdsdv1.Cluster_FROZEN},
		{Name: "web", Source: "a-longer-name", Endpoints: 1, Unknown: 1, Quarantined: []*hdsdv1.Quarantine{{Reason: "cannot be read"}}},
	}}
}

func (f *fake) ListCheckers(context.Context, *hdsdv1.ListCheckersRequest) (*hdsdv1.ListCheckersResponse, error) {
	all := []*hdsdv1.Checker{
		{
			Id: "checker-1", Locality: &corev3.Locality{Region: "eu", Zone: "a"}, Version: "envoy/1.40.0", Connected: true,
			Abilities: []string{"HTTP", "TCP", "GRPC"}, AssignedEndpoints: 120, Specifier: "SYNCED", LastReport: timestamppb.New(noon), Trusted: true,
			Weight: 1, Share: 118, ChecksPerSecond: 24, MaxChecksPerSecond: new(40.0), PlanDigest: "00c0ffee00c0ffee",
			Operator: &hdsdv1.Trust{Checker: "checker-1", Word: hdsdv1.Trust_TRUSTED, Reason: "its peers are stuck", Author: "ann@here", Since: timestamppb.New(noon)},
		},
		{Id: "checker-2", Locality: &corev3.Locality{}, AssignedEndpoints: 4, Specifier: "NOT_SENT", DistrustReason: "distrusted since 2026-01-02T12:00:00Z by ann@here: stuck", LostSince: timestamppb.New(noon), LostReason: "its stream ended", Probation: true, ProbationReason: "it has agreed with established checkers for 12s of 30s", BlindReason: "it said up through 2 outages in a row that its peers saw", Operator: &hdsdv1.Trust{
			Checker: "checker-2", Word: hdsdv1.Trust_DISTRUSTED, Reason: "stuck", Author: "ann@here", Since: timestamppb.New(noon),
		}},
	}
	for _, k := range all {
		k.Replica = f.replica
	}
	return &hdsdv1.ListCheckersResponse{Checkers: all}, nil
}

func (f *fake) ListReplicas(context.Context, *hdsdv1.ListReplicasRequest) (*hdsdv1.ListReplicasResponse, error) {
	if f.replicas == nil {
		return &hdsdv1.ListReplicasResponse{Replicas: []*hdsdv1.Replica{{Id: "hdsd-1", Self: true, Leader: true, Connected: true, Version: "1.2.3", Since: timestamppb.New(noon)}}}, nil
	}
	return f.replicas, nil
}

func (f *fake) ListAvailability(_ context.Context, r *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	f.periods = append(f.periods, r)
	if !f.has(r.GetAddress()) {
		return &hdsdv1.ListAvailabilityResponse{}, nil
	}
	return &hdsdv1.ListAvailabilityResponse{Availability: []*hdsdv1.Availability{
		{
			Cluster: "web", Address: "10.0.0.1:8080", Locality: &corev3.Locality{Region: "eu", Zone: "a"},
			HealthySeconds: 86000.5, UnhealthySeconds: 399.5, HealthyRatio: new(86000.5 / 86400), Transitions: 4,
		},
		{Cluster: "web", Address: "10.0.0.2:8080", Locality: &corev3.Locality{}, UnknownSeconds: 86400},
	}}, nil
}

func (f *fake) ListIncidents(_ context.Context, r *hdsdv1.ListIncidentsRequest) (*hdsdv1.ListIncidentsResponse, error) {
	f.incidents = append(f.incidents, r)
	all := []*hdsdv1.Incident{
		{Id: "dkz1y", Start: timestamppb.New(noon.Add(time.Minute)), End: timestamppb.New(noon.Add(2 * time.Minute)), Cause: hdsdv1.Incident_ENDPOINT, Clusters: []string{"pay"}, Zones: []string{"a"}, Endpoints: 1, Summary: "1 endpoint of pay in zone a went down; over after 1m0s"},
		{
			Id: "dkz1x", Start: timestamppb.New(noon), Cause: hdsdv1.Incident_CLUSTER, Clusters: []string{"web"}, Zones: []string{"a", "b"}, Endpoints: 4, Down: 1,
			First:   &hdsdv1.Transition{Cluster: "web", Address: "10.0.0.2:8080", From: corev3.HealthStatus_HEALTHY, To: corev3.HealthStatus_UNHEALTHY, Reason: "2 of 2 believed checkers say UNHEALTHY", Observations: votes()},
			Summary: "4 endpoints of web in 2 zones went down, 1 still is, since 2026-01-02T12:00:00Z",
		},
		{
			Id: "dkz1w", Start: timestamppb.New(noon.Add(-time.Hour)), End: timestamppb.New(noon.Add(-59 * time.Minute)), Cause: hdsdv1.Incident_ZONE,
			Clusters: []string{"pay", "web"}, Zones: []string{"a"}, Endpoints: 20, Summary: "20 endpoints of 2 clusters in zone a went down; over after 1m0s",
		},
	}
	if r.GetId() != "" {
		all = slices.DeleteFunc(all, func(i *hdsdv1.Incident) bool { return i.GetId() != r.GetId() })
	}
	if r.Open != nil {
		all = slices.DeleteFunc(all, func(i *hdsdv1.Incident) bool { return (i.GetEnd() == nil) != r.GetOpen() })
	}
	at, _ := strconv.Atoi(r.GetPageToken())
	if all = all[at:]; r.GetPageSize() > 0 && int(r.GetPageSize()) < len(all) {
		return &hdsdv1.ListIncidentsResponse{Incidents: all[:r.GetPageSize()], NextPageToken: strconv.Itoa(at + int(r.GetPageSize()))}, nil
	}
	return &hdsdv1.ListIncidentsResponse{Incidents: all}, nil
}

func (f *fake) GetOverview(_ context.Context, r *hdsdv1.GetOverviewRequest) (*hdsdv1.GetOverviewResponse, error) {
	all := f.overview
	return &hdsdv1.GetOverviewResponse{Clusters: all[:min(len(all), int(r.GetLimit()))]}, nil
}

// ListEvents gives one event a page, newest first if asked to.
func (f *fake) ListEvents(_ context.Context, r *hdsdv1.ListEventsRequest) (*hdsdv1.ListEventsResponse, error) {
	f.events = append(f.events, r)
	all := []*hdsdv1.Event{
		{Time: timestamppb.New(noon.Add(-time.Hour)), Kind: hdsdv1.Event_CHECKER_LOST, Checker: "checker-1", Locality: &corev3.Locality{Zone: "a"}, Text: "disconnected"},
		{Time: timestamppb.New(noon), Kind: hdsdv1.Event_NOTE, Cluster: "web", Author: "ann@here", Text: "rolled out v7"},
		{Time: timestamppb.New(noon.Add(time.Hour)), Kind: hdsdv1.Event_FROZEN, Author: "bob", Text: "moving"},
	}
	if r.GetChecker() != "" {
		all = slices.DeleteFunc(all, func(e *hdsdv1.Event) bool { return e.GetChecker() != r.GetChecker() })
	}
	if r.GetNewestFirst() {
		slices.Reverse(all)
	}
	at, _ := strconv.Atoi(r.GetPageToken())
	if len(all) == 0 {
		return &hdsdv1.ListEventsResponse{}, nil
	}
	answer := &hdsdv1.ListEventsResponse{Events: all[at : at+1]}
	if at+1 < len(all) {
		answer.NextPageToken = strconv.Itoa(at + 1)
	}
	return answer, nil
}

func (f *fake) ListClients(_ context.Context, r *hdsdv1.ListClientsRequest) (*hdsdv1.ListClientsResponse, error) {
	all := []*hdsdv1.Client{
		{
			Id: "checker-1", Kind: "checker", Connected: true, TypeUrl: "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier",
			Resources: 1, Synced: 1, LastAck: timestamppb.New(noon),
		},
		{
			Id: "dp-1", Kind: "subscriber", Connected: true, TypeUrl: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
			Resources: 12, Synced: 10, Stale: 1, Error: 1, LastAck: timestamppb.New(noon), LastError: "malformed",
		},
		{
			Id: "dp-2", Kind: "subscriber", Connected: true, TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
			Resources: 2, Stale: 2, Poll: &hdsdv1.Poll{By: "REST", Time: timestamppb.New(noon), Given: "8f14e45fceea167a"},
		},
	}
	if r.GetCluster() != "" {
		all = all[1:] // the checker has none
	}
	for _, k := range all {
		k.Replica = f.replica
	}
	return &hdsdv1.ListClientsResponse{Clients: all}, nil
}

func (f *fake) GetStatus(context.Context, *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	return f.status, nil
}

// Watch shows what the other questions show, and ends.
func (f *fake) Watch(r *hdsdv1.WatchRequest, stream grpc.ServerStreamingServer[hdsdv1.WatchResponse]) error {
	f.watches = append(f.watches, r)
	if r.GetCluster() == "wbe" {
		return unknownCluster(r.GetCluster())
	}
	if r.GetCluster() == "ending" {
		return api.ErrStopping
	}
	var all []*hdsdv1.WatchResponse
	for _, e := range f.endpoints {
		if !known(r.GetAddress()) {
			break
		}
		all = append(all, &hdsdv1.WatchResponse{Event: &hdsdv1.WatchResponse_Endpoint{Endpoint: e}})
	}
	all = append(all, &hdsdv1.WatchResponse{Token: "1", Event: &hdsdv1.WatchResponse_Synced{Synced: &hdsdv1.Synced{}}})
	history, err := f.ListTransitions(stream.Context(), &hdsdv1.ListTransitionsRequest{Address: r.GetAddress()})
	for _, t := range history.GetTransitions() {
		all = append(all, &hdsdv1.WatchResponse{Token: "2", Event: &hdsdv1.WatchResponse_Transition{Transition: t}})
	}
	for _, event := range all {
		err = errors.Join(err, stream.Send(event))
	}
	if f.stay {
		<-stream.Context().Done()
	}
	return err
}

// serveFake serves a fake until the test ends.
func serveFake(t *testing.T, f *fake, options ...grpc.ServerOption) (address string) {
	t.Helper()
	return serveOn(t, func(server *grpc.Server) { hdsdv1.RegisterQueryServer(server, f) }, options...)
}

// serveOn serves what is registered until the test ends.
func serveOn(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	register(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}
