package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func aHold() *hdsdv1.Source_Held {
	return &hdsdv1.Source_Held{
		Since: timestamppb.New(noon), AcceptsAt: timestamppb.New(noon.Add(5 * time.Minute)), Clusters: 1, Endpoints: 2, Revision: "ab",
	}
}

func (f *fakeControl) ListSources(context.Context, *hdsdv1.ListSourcesRequest) (*hdsdv1.ListSourcesResponse, error) {
	return &hdsdv1.ListSourcesResponse{Sources: []*hdsdv1.Source{
		{Name: "mesh", Clusters: 10, Endpoints: 20, Held: aHold()}, {Name: "local", Clusters: 3, Endpoints: 4, Problem: "clusters.yaml:7: web: name: is missing"},
	}}, nil
}

// AcceptSource accepts nothing but what is held.
func (f *fakeControl) AcceptSource(_ context.Context, r *hdsdv1.AcceptSourceRequest) (*hdsdv1.AcceptSourceResponse, error) {
	if r.GetName() != "mesh" || !r.GetHeldSince().AsTime().Equal(noon) || r.GetHeldRevision() != "ab" || r.GetReason() != "moved" {
		return nil, status.Errorf(codes.FailedPrecondition, "asked for %v", r)
	}
	return &hdsdv1.AcceptSourceResponse{Accepted: aHold(), Source: &hdsdv1.Source{Name: "mesh", Clusters: 1, Endpoints: 2}}, nil
}

func TestSource(t *testing.T) {
	_, address := serveFreezable(t)
	exit, out, errors := hdsd(t, "source", "list", "--output", "csv", "--server", address)
	const want = "name,clusters,endpoints,held_since,clusters_left,endpoints_left,accepts_at,problem\n" +
		"mesh,10,20,2026-01-02T12:00:00.345Z,1,2,2026-01-02T12:05:00.345Z,\nlocal,3,4,,,,,clusters.yaml:7: web: name: is missing\n"
	if exit != exitDone || out != want || errors != "" {
		t.Errorf("%d, %q, %q; want %q", exit, out, errors, want)
	}
	exit, out, errors = hdsd(t, "source", "accept", "mesh", "--reason", "moved", "--server", address)
	if exit != exitDone || out != "mesh has 10 clusters and 20 endpoints in use; 1 cluster and 2 endpoints are left\naccepted: 1 cluster and 2 endpoints are in use\n" {
		t.Errorf("%d, %q, %q", exit, out, errors)
	}
	if exit, _, errors = hdsd(t, "source", "accept", "local", "--server", address); exit == exitDone || !strings.Contains(errors, "asked for") {
		t.Errorf("%d, %q", exit, errors)
	}
	for _, wrong := range [][]string{{"source"}, {"source", "accept"}, {"source", "lits"}} {
		if exit, _, errors := hdsd(t, wrong...); exit != exitUsage || errors == "" {
			t.Errorf("%v: %d, %q", wrong, exit, errors)
		}
	}
}
