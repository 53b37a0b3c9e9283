package query

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/health"
	"hdsd/source/sample"
	"hdsd/store"
)

func endpoint(cluster, address string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: "a"}, Address: address}
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	history, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = history.Close() })
	return history
}

// newPast makes a backend whose present and recorded endpoints partly overlap.
func newPast(t *testing.T) (*Backend, []health.Endpoint) {
	t.Helper()
	history := openStore(t)
	var all []health.Endpoint
	for _, e := range []health.Endpoint{endpoint("web", "10.0.0.1:80"), endpoint("web", "10.0.0.2:80"), endpoint("gone", "10.0.0.1:80"), endpoint("zoo", "10.0.0.1:80")} {
		history.Append([]health.Transition{{Time: time.Now(), Endpoint: e, To: health.Healthy}})
		all = append(all, e)
	}
	if err := history.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all = append(all, endpoint("api", "10.0.0.1:80"), endpoint("api", "10.0.0.2:80"), endpoint("web", "10.0.0.3:80"))
	slices.SortFunc(all, health.Endpoint.Compare)
	core := newFake(sample.Web("api", "10.0.0.1:80", "10.0.0.2:80"), sample.Web("web", "10.0.0.1:80", "10.0.0.3:80"))
	return New(Options{Core: core, Store: history}), all
}

func TestAllEndpointsOfThePresentAndTheHistory(t *testing.T) {
	b, all := newPast(t)
	for _, cluster := range []string{"", "api", "gone", "web"} {
		for _, address := range []string{"", "10.0.0.1:80"} {
			want := slices.DeleteFunc(slices.Clone(all), func(e health.Endpoint) bool {
				return cluster != "" && e.Cluster != cluster || address != "" && e.Address != address
			})
			for limit := 1; limit <= len(all)+1; limit++ {
				var got []health.Endpoint
				for after, more := (*health.Endpoint)(nil), true; more && len(got) <= len(all); {
					page, further, err := b.allEndpoints(t.Context(), cluster, address, false, after, limit)
					if err != nil || len(page) > limit || further && len(page) == 0 {
						t.Fatal(page, further, err)
					}
					got = append(got, page...)
					if more = further; more {
						after = &got[len(got)-1]
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q %q, %d a page: %s", cluster, address, limit, diff)
				}
			}
		}
	}
}

func TestAvailabilityByPages(t *testing.T) {
	b, all := newPast(t)
	var got []health.Endpoint
	q := api.AvailabilityQuery{Limit: 2}
	for {
		page, err := b.Availability(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Found {
			var sum time.Duration
			for _, spent := range row.Durations {
				sum += spent
			}
			if want := page.End.Sub(page.Start); sum != want {
				t.Errorf("%v: %v in all, want %v", row.Endpoint, sum, want)
			}
			got = append(got, row.Endpoint)
		}
		if !page.More {
			break
		}
		q.After, q.Start, q.End = &got[len(got)-1], page.Start, page.End
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Error(diff)
	}
}

// TestAnEndpointThatMovesHasOneHistory under its present locality: in transitions, availability
// and incidents.
func TestAnEndpointThatMovesHasOneHistory(t *testing.T) {
	b := New(Options{Core: newFake(sample.Web("web", "10.0.0.3:80")), Store: openStore(t)})
	here, there := endpoint("web", "10.0.0.3:80"), endpoint("web", "10.0.0.3:80")
	here.Locality.Zone = "b"
	start := time.Now().Add(-100 * time.Second)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	b.Store.Append([]health.Transition{
		{Time: second(0), Endpoint: here, To: health.Unhealthy},
		{Time: second(40), Endpoint: here, From: health.Unhealthy, Reason: "moved to", Moved: &there.Locality},
		{Time: second(40), Endpoint: there, To: health.Unhealthy, Reason: "moved from", Moved: &here.Locality},
		{Time: second(80), Endpoint: there, From: health.Unhealthy, To: health.Healthy},
	})
	if err := b.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _, err := b.Transitions(t.Context(), api.TransitionQuery{Cluster: "web", Address: here.Address})
	if err != nil || len(found) != 3 || found[1].From != health.Unhealthy || found[1].To != health.Unhealthy || found[1].Reason != "moved from" {
		t.Errorf("%+v %v", found, err)
	}
	page, err := b.Availability(t.Context(), api.AvailabilityQuery{Cluster: "web", Address: here.Address, Limit: 9, Start: second(10), End: second(90)})
	want := []api.Availability{{Endpoint: there, Transitions: 1, Durations: [6]time.Duration{health.Unhealthy: 70 * time.Second, health.Healthy: 10 * time.Second}}}
	if diff := cmp.Diff(want, page.Found); diff != "" || err != nil {
		t.Error(diff, err)
	}
	incidents, err := incidentsOf(t, b, "web")
	if err != nil || len(incidents) != 1 || incidents[0].Endpoints != 1 || incidents[0].End.Sub(incidents[0].Start) != 80*time.Second {
		t.Errorf("%+v %v", incidents, err)
	}
}
