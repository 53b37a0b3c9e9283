package coordinator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/store"
)

// past gives a backend of the lab's core and a history, whose endpoints partly
// overlap. The core runs until the test ends.
func newPastLab(t *testing.T) (*backend, []health.Endpoint) {
	t.Helper()
	l := newLab(t)
	l.serve(web("api", "10.0.0.1:80", "10.0.0.2:80"), web("web", "10.0.0.1:80", "10.0.0.3:80"))
	history, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = history.Close() })
	var all []health.Endpoint
	for _, e := range []health.Endpoint{keyOf("web", "10.0.0.1:80"), keyOf("web", "10.0.0.2:80"), keyOf("gone", "10.0.0.1:80"), keyOf("zoo", "10.0.0.1:80")} {
		history.Append([]health.Transition{{Time: time.Now(), Endpoint: e, To: health.Healthy}})
		all = append(all, e)
	}
	if err := history.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go l.core.run(stop)
	t.Cleanup(func() { close(stop); <-l.core.done })
	all = append(all, keyOf("api", "10.0.0.1:80"), keyOf("api", "10.0.0.2:80"), keyOf("web", "10.0.0.3:80"))
	slices.SortFunc(all, health.Endpoint.Compare)
	return &backend{core: l.core, store: history}, all
}

func TestEveryoneThatIsOrWas(t *testing.T) {
	b, all := newPastLab(t)
	for _, cluster := range []string{"", "api", "gone", "web"} {
		for _, address := range []string{"", "10.0.0.1:80"} {
			want := slices.DeleteFunc(slices.Clone(all), func(e health.Endpoint) bool {
				return cluster != "" && e.Cluster != cluster || address != "" && e.Address != address
			})
			for limit := 1; limit <= len(all)+1; limit++ {
				var got []health.Endpoint
				for after, more := (*health.Endpoint)(nil), true; more && len(got) <= len(all); {
					page, further, err := b.everyone(t.Context(), cluster, address, after, limit)
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
	b, all := newPastLab(t)
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

func TestStreamsOfOneSubscriberAreOneClient(t *testing.T) {
	at := time.Unix(1000, 0)
	got := subscribers([]eds.Client{
		{ID: "dp", Stream: 1, TypeURL: "a", Resources: 3, Synced: 2, Stale: 1, LastAck: at},
		{ID: "dp", Stream: 1, TypeURL: "b", Resources: 1, Synced: 1},
		{ID: "dp", Stream: 2, TypeURL: "a", Resources: 2, Error: 2, LastAck: at.Add(-time.Second), LastError: "no"},
	})
	want := []api.Client{
		{ID: "dp", Kind: "subscriber", TypeURL: "a", Connected: true, Resources: 5, Synced: 2, Stale: 1, Error: 2, LastAck: at, LastError: "no"},
		{ID: "dp", Kind: "subscriber", TypeURL: "b", Connected: true, Resources: 1, Synced: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
