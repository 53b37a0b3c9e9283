package main

import (
	"context"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// SetOverride takes what is asked for, at noon.
func (f *fakeControl) SetOverride(_ context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.SetOverrideResponse, error) {
	if r.GetCluster() == "wbe" {
		return nil, unknownCluster("wbe")
	}
	if r.GetAddress() == "10.9.9.9:1" {
		return nil, status.Error(codes.NotFound, "there is no such endpoint")
	}
	f.set = r
	o := &hdsdv1.Override{
		Cluster: r.GetCluster(), Address: r.GetAddress(), Locality: r.GetLocality(), Health: r.GetHealth(),
		Reason: r.GetReason(), Author: r.GetAuthor(), Since: timestamppb.New(noon), Endpoints: 1,
	}
	if r.GetCluster() == "drained" {
		o.Endpoints = 0
	}
	answer := &hdsdv1.SetOverrideResponse{Override: o}
	if r.GetDuration() != nil {
		o.Until = timestamppb.New(noon.Add(r.GetDuration().AsDuration()))
		answer.Replaced = anOverride()
	}
	return answer, nil
}

func (f *fakeControl) ClearOverrides(_ context.Context, r *hdsdv1.ClearOverridesRequest) (*hdsdv1.ClearOverridesResponse, error) {
	f.cleared = r
	if r.GetCluster() == "db" {
		return &hdsdv1.ClearOverridesResponse{}, nil
	}
	return &hdsdv1.ClearOverridesResponse{Ended: []*hdsdv1.Override{anOverride()}}, nil
}

func (f *fakeControl) ListOverrides(context.Context, *hdsdv1.ListOverridesRequest) (*hdsdv1.ListOverridesResponse, error) {
	timed := anOverride()
	timed.Cluster, timed.Address, timed.Locality = "web", "10.0.0.7:8080", &corev3.Locality{}
	timed.Health, timed.Until = corev3.HealthStatus_HEALTHY, timestamppb.New(noon.Add(time.Hour))
	return &hdsdv1.ListOverridesResponse{Overrides: []*hdsdv1.Override{anOverride(), timed}}, nil
}

func anOverride() *hdsdv1.Override {
	return &hdsdv1.Override{
		Locality: &corev3.Locality{Zone: "b"}, Health: corev3.HealthStatus_DRAINING, Reason: "power works", Author: "ann@here",
		Since: timestamppb.New(noon), Endpoints: 120,
	}
}

func TestOverride(t *testing.T) {
	control, address := serveFreezable(t)
	const since = " since 2026-01-02T12:00:00.345Z"
	zone := "everything in /b: drained" + since + " by ann@here: power works\n"
	for line, want := range map[string]string{
		"drain web 10.0.0.7:8080 --author bob": "web 10.0.0.7:8080: drained" + since + " by bob: kernel upgrade\napplies to 1 endpoint\n",
		"healthy web --locality eu --author bob --for 7d": "web in eu: forced healthy" + since + " until 2026-01-09T12:00:00Z by bob: kernel upgrade\n" +
			"applies to 1 endpoint\nit replaces: " + zone,
		"drain drained --author bob":               "drained: drained" + since + " by bob: kernel upgrade\napplies to 0 endpoints: more specific overrides decide all of them ('hdsd override list')\n",
		"unhealthy --locality //rack --author bob": "everything in //rack: forced unhealthy" + since + " by bob: kernel upgrade\napplies to 1 endpoint\n",
		"clear --locality /b":                      "cleared: " + zone,
		"clear --all":                              "cleared: " + zone,
		"clear db --all":                           "there is no such override: nothing has changed\n",
	} {
		args := append([]string{"override"}, strings.Fields(line)...)
		if !strings.HasPrefix(line, "clear") {
			args = append(args, "--reason", "kernel upgrade")
		}
		exit, out, errors := hdsd(t, append(args, "--server", address)...)
		if exit != exitDone || out != want || errors != "" {
			t.Errorf("%s: exit status %d, %q, %s; want %q", line, exit, out, errors, want)
		}
	}
	for _, line := range []string{"drain web --reason x", "clear web", "list"} {
		control.frozen = &hdsdv1.FreezeState{Frozen: true, Reason: "moving", Author: "alice", Since: timestamppb.New(noon)}
		_, _, errors := hdsd(t, append(append([]string{"override"}, strings.Fields(line)...), "--server", address)...)
		if want := "hdsd: frozen" + since + " by alice: moving\n"; errors != want {
			t.Errorf("%s while frozen: %q, want %q", line, errors, want)
		}
	}
	control.frozen = nil
	hdsd(t, "override", "drain", "web", "10.0.0.7:8080", "--locality", "eu/a/r", "--reason", "x", "--server", address)
	if r := control.set; r.GetCluster() != "web" || r.GetAddress() != "10.0.0.7:8080" || r.GetLocality().GetSubZone() != "r" || r.Duration != nil || !strings.Contains(r.GetAuthor(), "@") {
		t.Errorf("asked for %v", r)
	}
	hdsd(t, "override", "clear", "web", "--locality", "eu/a", "--server", address)
	if r := control.cleared; r.GetCluster() != "web" || r.GetRegion() != "eu" || r.GetZone() != "a" || r.GetAll() || !strings.Contains(r.GetAuthor(), "@") {
		t.Errorf("cleared %v", r)
	}
}

func TestOverrideList(t *testing.T) {
	_, address := serveFreezable(t)
	for _, format := range []string{"table", "json", "csv"} {
		exit, out, errors := hdsd(t, "override", "list", "--server", address, "-o", format)
		if exit != exitDone || errors != "" {
			t.Errorf("-o %s: exit status %d, %s", format, exit, errors)
		}
		golden(t, "override-list."+format, out)
	}
}

func TestWrongOverrides(t *testing.T) {
	for line, want := range map[string]string{
		"override nonsense":                                "drain, healthy, unhealthy, clear or list",
		"override drain --reason x":                        "name a target",
		"override drain --reason x --locality //":          "name a target",
		"override drain web":                               "--reason TEXT is missing",
		"override drain a b c --reason x":                  "at most 2",
		"override drain web --reason x --locality a/b/c/d": "REGION/ZONE",
		"override drain web --reason x --for soon":         "want a duration",
		"override drain web --reason x --for 0s":           "want a duration",
		"override drain web --reason x --for -1h":          "want a duration",
		"override clear":                                   "or give --all",
		"override clear web --locality a/b/c/d":            "REGION/ZONE",
		"override list web":                                "web",
	} {
		exit, out, errors := hdsd(t, strings.Fields(line)...)
		if exit != exitUsage || out != "" || !strings.Contains(errors, want) || strings.Count(errors, "\n") != 2 {
			t.Errorf("hdsd %s: exit status %d, %q, %q", line, exit, out, errors)
		}
	}
	_, address := serveFreezable(t)
	for line, want := range map[string]string{
		"wbe":            `hdsd: unknown cluster "wbe": did you mean web? ('hdsd clusters' lists all)` + "\n",
		"web 10.9.9.9:1": "hdsd: there is no such endpoint\n",
	} {
		args := append([]string{"override", "drain", "--reason", "x", "--server", address}, strings.Fields(line)...)
		if exit, _, errors := hdsd(t, args...); exit != exitFailed || errors != want {
			t.Errorf("%s: exit status %d, %q, want %q", line, exit, errors, want)
		}
	}
}
