package api_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// past is a Backend with a history of an hour: endpoints that were down for some minutes each.
type past struct {
	fleet
	down map[health.Endpoint]time.Duration
	keys []health.Endpoint // in order

	before  []api.EndpointHealth
	changes []health.Transition
}

func (p *past) Availability(_ context.Context, q api.AvailabilityQuery) (api.AvailabilityPage, error) {
	page := api.AvailabilityPage{Start: noon, End: noon.Add(time.Hour)}
	for _, e := range p.keys {
		if q.After != nil && e.Compare(*q.After) <= 0 {
			continue
		}
		if len(page.Found) == min(q.Limit, 2) { // short pages
			page.More = true
			break
		}
		down := p.down[e]
		page.Found = append(page.Found, api.Availability{Endpoint: e, Transitions: 1, Durations: [6]time.Duration{health.Unhealthy: down, health.Healthy: time.Hour - down}})
	}
	return page, nil
}

func (p *past) Endpoints(context.Context, api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	return p.before, false, nil
}

func (p *past) Transitions(context.Context, api.TransitionQuery) ([]health.Transition, string, error) {
	return p.changes, "", nil
}

func at(cluster, zone string, n int) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: zone, SubZone: fmt.Sprint("rack", n)}, Address: fmt.Sprintf("10.0.0.%d:80", n)}
}

func newPast() *past {
	p := &past{down: map[health.Endpoint]time.Duration{}}
	for i, e := range []health.Endpoint{at("pay", "a", 1), at("pay", "b", 2), at("web", "a", 3), at("web", "b", 4)} {
		p.keys, p.down[e] = append(p.keys, e), time.Duration(i)*6*time.Minute
	}
	return p
}

// TestAvailabilityAddsUpWorstFirst, with what is left of the budget, over pages of any size.
func TestAvailabilityAddsUpWorstFirst(t *testing.T) {
	for by, want := range map[string]string{
		"endpoint": "web 10.0.0.4:80 b 0.7 -0.50, web 10.0.0.3:80 a 0.8 0.00, pay 10.0.0.2:80 b 0.9 0.50, pay 10.0.0.1:80 a 1.0 1.00",
		"cluster":  "web   0.8 -0.25, pay   0.9 0.75",
		"zone":     "  b 0.8 0.00, " + "  a 0.9 0.50",
		"Locality": "  b 0.7 -0.50,   a 0.8 0.00,   b 0.9 0.50,   a 1.0 1.00",
	} {
		for _, size := range []int32{1, 3, 100} {
			service, request := api.NewService(newPast()), &hdsdv1.ListAvailabilityRequest{By: by, Slo: "80%", PageSize: size}
			var rows []string
			for {
				answer, err := service.ListAvailability(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range answer.GetAvailability() {
					left := math.Round(a.GetBudgetLeft()*100)/100 + 0 // no -0
					rows = append(rows, fmt.Sprintf("%s %s %s %.1f %.2f", a.GetCluster(), a.GetAddress(), a.GetLocality().GetZone(), a.GetHealthyRatio(), left))
				}
				if request.PageToken = answer.GetNextPageToken(); request.GetPageToken() == "" {
					break
				}
			}
			if got := strings.Join(rows, ", "); got != want {
				t.Errorf("by %s, in pages of %d:\n%s, want\n%s", by, size, got, want)
			}
		}
	}
}

// TestAvailabilityByChecker is by the votes that transitions recorded, and those before them. A
// vote of a warm-up says nothing about what its checker saw.
func TestAvailabilityByChecker(t *testing.T) {
	p := newPast()
	e := p.keys[0]
	say := func(who string, s health.Status) health.Observation {
		return health.Observation{Checker: who, Status: s}
	}
	warming := func(who string, s health.Status) health.Observation {
		return health.Observation{Checker: who, Status: s, Disbelieved: health.WarmingUp + health.ForTooLong}
	}
	p.before = []api.EndpointHealth{{Endpoint: e, Verdict: health.Verdict{Observations: []health.Observation{say("c1", health.Healthy), say("c2", health.Healthy)}}}}
	p.changes = []health.Transition{
		{Time: noon.Add(15 * time.Minute), Endpoint: e, To: health.Unhealthy, Observations: []health.Observation{say("c1", health.Unhealthy), say("c2", health.Healthy), warming("c3", health.Unhealthy)}},
		{Time: noon.Add(45 * time.Minute), Endpoint: e, To: health.Healthy, Observations: []health.Observation{say("c1", health.Healthy), say("c3", health.Healthy), say("newer", health.Degraded+1)}},
	}
	moved := e
	moved.Locality.Zone = "b"
	before, after := p.changes[0], p.changes[1]
	move := health.Transition{Time: noon.Add(30 * time.Minute), Endpoint: moved, From: before.To, To: before.To, Observations: before.Observations, Moved: &e.Locality}
	after.Endpoint = moved
	p.changes = []health.Transition{before, move, after}
	answer, err := api.NewService(p).ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{By: "checker"})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, a := range answer.GetAvailability() {
		rows = append(rows, fmt.Sprintf("%s %.0f %.0f %d", a.GetChecker(), a.GetHealthySeconds(), a.GetUnhealthySeconds(), a.GetTransitions()))
		if a.BudgetLeft != nil {
			t.Errorf("%s has a budget without an objective", a.GetChecker())
		}
	}
	if got, want := strings.Join(rows, ", "), "c1 1800 1800 2, c2 2700 0 1, c3 900 0 1, newer 0 0 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestWrongObjectivesAreRefused, and each token fits its own question.
func TestWrongObjectivesAreRefused(t *testing.T) {
	service := api.NewService(newPast())
	for _, wrong := range []*hdsdv1.ListAvailabilityRequest{
		{By: "rack"}, {Slo: "1"}, {Slo: "0"}, {Slo: "99.9"}, {Slo: "-1%"}, {Slo: "NaN"}, {Slo: "x"}, {Slo: "100%"}, {By: "zone", PageToken: "x"},
	} {
		if _, err := service.ListAvailability(t.Context(), wrong); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	first, err := service.ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{By: "zone", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.ListAvailability(t.Context(), &hdsdv1.ListAvailabilityRequest{By: "cluster", PageSize: 1, PageToken: first.GetNextPageToken()}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("with another question: %v", err)
	}
}
