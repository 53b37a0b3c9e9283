package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/incident"
)

func (f *fleet) Incidents(_ context.Context, q api.IncidentQuery) (page api.IncidentPage, err error) {
	all := incident.NewLog()
	for n := range 5 {
		all.Add(uint64(n+1), &health.Transition{
			Time: noon.Add(time.Duration(n) * time.Hour), Endpoint: health.Endpoint{Cluster: fmt.Sprint("c", n), Address: "10.0.0.1:80"}, To: health.Unhealthy,
		})
	}
	q.Visible = func(string) bool { return true }
	page.Incidents, page.More = all.List(q.Query)
	page.Partial = q.AllowPartial
	return page, nil
}

// TestIncidentsArePaged, and a token fits its own question only.
func TestIncidentsArePaged(t *testing.T) {
	service := api.NewService(&fleet{})
	var seen []string
	request := &hdsdv1.ListIncidentsRequest{PageSize: 2}
	for {
		answer, err := service.ListIncidents(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range answer.GetIncidents() {
			seen = append(seen, i.GetId())
		}
		if request.PageToken = answer.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
		if _, err := service.ListIncidents(t.Context(), &hdsdv1.ListIncidentsRequest{PageSize: 2, Cluster: "c1", PageToken: request.GetPageToken()}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("with another question: %v", err)
		}
	}
	if strings.Join(seen, " ") != "5 4 3 2 1" {
		t.Errorf("saw %v", seen)
	}
}

func (f *fleet) Availability(_ context.Context, q api.AvailabilityQuery) (api.AvailabilityPage, error) {
	f.periods = append(f.periods, q)
	page := api.AvailabilityPage{Start: q.Start, End: q.End}
	if page.Start.IsZero() {
		page.Start = noon
	}
	if page.End.IsZero() { // each time later
		page.End = noon.Add(time.Duration(len(f.periods)) * time.Hour)
	}
	endpoints, more, err := f.Endpoints(context.Background(), api.EndpointQuery{Cluster: q.Cluster, After: q.After, Limit: q.Limit})
	for i, e := range endpoints {
		row := api.Availability{Endpoint: e.Endpoint}
		if i == 0 {
			row.Transitions = 4
			row.Durations = [6]time.Duration{
				health.Healthy: 90 * time.Second, health.Unhealthy: 8 * time.Second, health.Timeout: 2 * time.Second,
				health.Unknown: 500 * time.Millisecond, health.Degraded: time.Minute, health.Draining: time.Hour,
			}
		}
		page.Found = append(page.Found, row)
	}
	page.More = more
	return page, err
}

func (f *fleet) Clients(_ context.Context, cluster string) ([]api.Client, error) {
	f.clients = append(f.clients, cluster)
	return []api.Client{
		{ID: "dp-2", Kind: api.KindSubscriber, TypeURL: "b", Connected: true, Resources: 3, Synced: 1, Stale: 1, Error: 1, Unasked: 2, LastAck: noon, LastError: "no"},
		{ID: "dp-1", Kind: api.KindSubscriber, TypeURL: "b", Connected: true, Poll: &api.Poll{Protocol: "REST", Time: noon, Served: "2", Held: "1"}},
		{ID: "dp-2", Kind: api.KindChecker, TypeURL: "a"},
	}, nil
}

func TestAvailabilityHasThePromisedShape(t *testing.T) {
	code, body, _ := get(t, &fleet{n: 2}, "/v1/availability?cluster=web&startTime=2026-01-02T00:00:00Z&endTime=&address=")
	want := `{"availability":[{"address":"10.0.0.000:80","cluster":"web","degradedSeconds":60,"drainingSeconds":3600,"healthyRatio":0.9,"healthySeconds":90,` +
		`"locality":{"region":"","subZone":"","zone":"a"},"transitions":4,"unhealthySeconds":10,"unknownSeconds":0.5},` +
		`{"address":"10.0.0.001:80","cluster":"web","degradedSeconds":0,"drainingSeconds":0,"healthySeconds":0,` +
		`"locality":{"region":"","subZone":"","zone":"a"},"transitions":0,"unhealthySeconds":0,"unknownSeconds":0}],"nextPageToken":""}`
	if got, _ := json.Marshal(body); code != http.StatusOK || string(got) != want {
		t.Errorf("%d, got\n%s, want\n%s", code, got, want)
	}
}

// TestPagesOfAvailabilityCoverOnePeriod: though time goes on between them.
func TestPagesOfAvailabilityCoverOnePeriod(t *testing.T) {
	f := &fleet{n: 5}
	for token := ""; ; {
		code, body, text := get(t, f, "/v1/availability?pageSize=2&pageToken="+token)
		if code != http.StatusOK {
			t.Fatal(text)
		}
		if token = body["nextPageToken"].(string); token == "" {
			break
		}
	}
	if len(f.periods) != 3 {
		t.Fatalf("%d pages", len(f.periods))
	}
	for _, q := range f.periods[1:] {
		if !q.Start.Equal(noon) || !q.End.Equal(noon.Add(time.Hour)) {
			t.Errorf("a later page is about %v to %v", q.Start, q.End)
		}
	}
}

func TestClientsHaveThePromisedShape(t *testing.T) {
	code, body, _ := get(t, &fleet{}, "/v1/clients?pageSize=2")
	if code != http.StatusOK {
		t.Fatal(body)
	}
	_, rest, _ := get(t, &fleet{}, "/v1/clients?pageToken="+body["nextPageToken"].(string))
	got, _ := json.Marshal(append(body["clients"].([]any), rest["clients"].([]any)...))
	row := func(id, kind, typeURL, rest string) string {
		return `"id":"` + id + `","kind":"` + kind + `",` + rest + `,"typeUrl":"` + typeURL + `"}`
	}
	want := `[{"connected":true,"error":0,` + row("dp-1", "subscriber", "b", `"lastAck":null,"lastError":"","poll":{"by":"REST","given":"2","held":"1","time":"2026-01-02T12:00:00.345Z"},"resources":0,"stale":0,"synced":0`) +
		`,{"connected":false,"error":0,` + row("dp-2", "checker", "a", `"lastAck":null,"lastError":"","resources":0,"stale":0,"synced":0`) +
		`,{"connected":true,"error":1,` + row("dp-2", "subscriber", "b", `"lastAck":"2026-01-02T12:00:00.345Z","lastError":"no","resources":3,"stale":1,"synced":1`) + `]`
	want = strings.TrimSuffix(want, "}]") + `,"unasked":2}]`
	want = strings.ReplaceAll(want, `"lastAck":null,`, "")
	if string(got) != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestImpossibleTimesAreRefused(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for path, want := range map[string]string{
		"/v1/transitions?startTime=2024-01-02T00:00:00Z&endTime=2024-01-01T00:00:00Z":  "start_time: 2024-01-02T00:00:00Z is after end_time, 2024-01-01T00:00:00Z: exchange the two",
		"/v1/availability?startTime=2024-01-02T00:00:00Z&endTime=2024-01-01T00:00:00Z": "start_time: 2024-01-02T00:00:00Z is after end_time, 2024-01-01T00:00:00Z: exchange the two",
		"/v1/endpoints?asOf=" + at(2*time.Minute):                                      "leave it out for the current health",
		"/v1/endpoints?asOf=" + at(30*time.Second):                                     "",
		"/v1/transitions?startTime=2024-01-02T00:00:00Z&endTime=2024-01-02T00:00:00Z":  "",
		"/v1/availability?startTime=2024-01-02T00:00:00Z":                              "",
		"/v1/transitions?endTime=2024-01-02T00:00:00Z":                                 "",
	} {
		code, body, text := get(t, &fleet{n: 1}, path)
		message, _ := body["message"].(string)
		if (code == http.StatusBadRequest) != (want != "") || !strings.Contains(message, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestAsOfIsPassedOn(t *testing.T) {
	f := &fleet{n: 3}
	_, body, _ := get(t, f, "/v1/endpoints?pageSize=2&asOf=2024-01-02T03:04:05.5Z")
	if want := time.Date(2024, 1, 2, 3, 4, 5, 500_000_000, time.UTC); len(f.asked) != 1 || !f.asked[0].AsOf.Equal(want) {
		t.Errorf("asked %+v", f.asked)
	}
	if _, _, text := get(t, f, "/v1/endpoints?asOf=0001-01-01T00:00:00Z"); f.asked[1].AsOf.IsZero() {
		t.Errorf("the first of all times is taken for none: %s", text)
	}
	token := body["nextPageToken"].(string)
	if code, _, text := get(t, f, "/v1/endpoints?asOf=2024-01-02T03:04:05.500Z&pageToken="+token); code != http.StatusOK {
		t.Errorf("the next page: %s", text)
	}
	for _, other := range []string{"", "&asOf=2024-01-02T03:04:06Z"} {
		if code, _, _ := get(t, f, "/v1/endpoints?pageToken="+token+other); code != http.StatusBadRequest {
			t.Errorf("the token serves for %q", other)
		}
	}
}
