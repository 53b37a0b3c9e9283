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

// newPast makes a backend whose present and recorded endpoints partly overlap.
func newPast(t *testing.T) (*Backend, []health.Endpoint) {
	t.Helper()
	history, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = history.Close() })
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
					page, further, err := b.allEndpoints(t.Context(), cluster, address, after, limit)
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
			for _, spent := range row.In {
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
