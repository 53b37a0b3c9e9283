package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"hdsd/api"
)

func (f *fleet) Replicas(context.Context) ([]api.Replica, int64, error) {
	return f.replicas, f.epoch, nil
}

// TestReplicasHaveThePromisedShape: 64-bit integers are texts, and zeros are there.
func TestReplicasHaveThePromisedShape(t *testing.T) {
	f := &fleet{epoch: 42, replicas: []api.Replica{
		{ID: "hdsd-1", Self: true, Leader: true, Connected: true, Address: "10.0.0.1:18100", Version: "1.2.3", Checkers: 3, DataPlanes: 120, Position: 4711, Since: noon},
		{ID: "hdsd-2", Lag: 1500 * time.Millisecond, Position: 1<<64 - 1},
	}}
	code, _, text := get(t, f, "/v1/replicas")
	want := `{"replicas":[{"id":"hdsd-1","self":true,"leader":true,"connected":true,"address":"10.0.0.1:18100","version":"1.2.3","checkers":3,"dataPlanes":120,"position":"4711","lagMillis":0,"since":"2026-01-02T12:00:00.345Z"},` +
		`{"id":"hdsd-2","self":false,"leader":false,"connected":false,"address":"","version":"","checkers":0,"dataPlanes":0,"position":"18446744073709551615","lagMillis":1500}],"epoch":"42"}`
	if code != http.StatusOK || text != want {
		t.Errorf("%d %s\nwant %s", code, text, want)
	}
}

// TestLagIsWithinItsField though clocks jump.
func TestLagIsWithinItsField(t *testing.T) {
	f := &fleet{replicas: []api.Replica{{ID: "a", Lag: -time.Hour}, {ID: "b", Lag: 1 << 62}}}
	if _, _, text := get(t, f, "/v1/replicas"); !strings.Contains(text, `"lagMillis":0}`) || !strings.Contains(text, `"lagMillis":4294967295}`) {
		t.Error(text)
	}
}

// crew is a fleet whose checkers and clients are connected to one of several replicas; one client to two.
type crew struct{ fleet }

func (f *crew) Checkers(ctx context.Context) ([]api.Checker, error) {
	all, err := f.fleet.Checkers(ctx)
	all[0].Replica = "hdsd-1"
	return all, err
}

func (f *crew) Clients(context.Context, string) ([]api.Client, error) {
	return []api.Client{{ID: "a", Replica: "hdsd-2"}, {ID: "b"}, {ID: "a", Replica: "hdsd-1"}}, nil
}

// TestTheReplicaOfAStream is absent without several, and pages go on between the rows of one client.
func TestTheReplicaOfAStream(t *testing.T) {
	service := api.NewService(&crew{})
	handler, err := service.Handler()
	if err != nil {
		t.Fatal(err)
	}
	if _, text := ask(t, handler, "/v1/checkers"); strings.Count(text, `"replica":"hdsd-1"`) != 1 || strings.Count(text, `"replica"`) != 1 {
		t.Error(text)
	}
	found, token := "", ""
	for range 3 {
		body, text := ask(t, handler, "/v1/clients?pageSize=1&pageToken="+token)
		found += text
		token = body["nextPageToken"].(string)
	}
	first, second := strings.Index(found, `"replica":"hdsd-1"`), strings.Index(found, `"replica":"hdsd-2"`)
	if token != "" || first < 0 || second < first || strings.Count(found, `"replica"`) != 2 || !strings.Contains(found, `"id":"b"`) {
		t.Errorf("%q, %s", token, found)
	}
}
