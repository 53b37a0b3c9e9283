package query

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/sample"
	"hdsd/store"
)

// TestTheHistoryOfAClusterIsThatOfItsVersions, of those too that have gone, in pages of any size; and
// of no cluster whose name only looks like one.
func TestTheHistoryOfAClusterIsThatOfItsVersions(t *testing.T) {
	const first, present, gone, other, unlike = "web", "web#1111111111111111", "web#2222222222222222", "web#3333333333333333", "web#4"
	version := func(own, outside string) *source.Cluster {
		k := sample.Web(outside, "10.0.0.1:80")
		k.Name = own
		return k
	}
	b := New(Options{Core: newFake(version(first, first), version(present, first), version(other, other)), Store: openStore(t)})
	begin := time.Now()
	for i, name := range []string{present, first, gone, other, unlike, "zoo"} {
		moment := begin.Add(time.Duration(i) * 2 * time.Minute)
		for j, to := range []health.Status{health.Healthy, health.Unhealthy, health.Healthy} {
			b.Store.Append([]health.Transition{{Time: moment.Add(time.Duration(j) * time.Second), Endpoint: endpoint(name, "10.0.0.1:80"), To: to}})
		}
		b.Store.AppendEvents([]store.Event{{Time: moment, Kind: storev1.EventKind_NOTE, Cluster: name, Text: "x"}})
	}
	if err := b.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		first: {first, present, gone}, present: {present}, gone: {gone}, other: {other}, unlike: {unlike},
	} {
		for _, address := range []string{"", "10.0.0.1:80"} {
			for limit := 1; limit < 5; limit++ {
				got := map[string][]string{}
				for _, newest := range []bool{false, true} {
					got["transitions"] = append(got["transitions"], transitionsOf(t, b, api.TransitionQuery{Cluster: name, Address: address, NewestFirst: newest, Limit: limit})...)
				}
				got["availability"] = availabilityOf(t, b, api.AvailabilityQuery{Cluster: name, Address: address, Limit: limit})
				got["endpoints"] = pastOf(t, b, api.EndpointQuery{Cluster: name, Address: address, AsOf: time.Now(), Limit: limit})
				if address == "" {
					got["events"] = eventsOf(t, b, api.RecordedEventQuery{Cluster: name, Limit: limit})
				}
				for kind, found := range got {
					repeated := map[string]int{"transitions": 6}[kind]
					var all []string
					for range max(repeated, 1) {
						all = append(all, want...)
					}
					slices.Sort(all)
					slices.Sort(found)
					if diff := cmp.Diff(all, found); diff != "" {
						t.Errorf("%s of %s (address %q), %d a page: %s", kind, name, address, limit, diff)
					}
				}
			}
		}
		incidents, err := incidentsOf(t, b, name)
		if err != nil || len(incidents) != len(want) {
			t.Errorf("%s has incidents %+v, %v", name, incidents, err)
		}
		for _, i := range incidents {
			if own := i.First.Endpoint.Cluster; !slices.Equal(i.Clusters, []string{health.ClusterOf(own, b.Version(own))}) {
				t.Errorf("an incident of %s is of %v", own, i.Clusters)
			}
		}
	}
	for _, name := range []string{"we", "web#", "web#5555555555555555"} {
		if _, _, err := b.Transitions(t.Context(), api.TransitionQuery{Cluster: name, Limit: 1}); !errors.Is(err, api.ErrUnknownCluster) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func transitionsOf(t *testing.T, b *Backend, q api.TransitionQuery) (clusters []string) {
	t.Helper()
	last := time.Time{}
	for {
		found, next, err := b.Transitions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			if now := found[i].Time; !last.IsZero() && now.Before(last) != q.NewestFirst {
				t.Errorf("%v comes after %v", now, last)
			}
			last = found[i].Time
			clusters = append(clusters, found[i].Endpoint.Cluster)
		}
		if q.Token = next; next == "" {
			return clusters
		}
	}
}

func availabilityOf(t *testing.T, b *Backend, q api.AvailabilityQuery) (clusters []string) {
	t.Helper()
	for {
		page, err := b.Availability(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Found {
			q.After = &page.Found[i].Endpoint
			clusters = append(clusters, q.After.Cluster)
		}
		if !page.More {
			return clusters
		}
	}
}

func pastOf(t *testing.T, b *Backend, q api.EndpointQuery) (clusters []string) {
	t.Helper()
	for more := true; more; {
		var found []api.EndpointHealth
		var err error
		if found, more, err = b.Endpoints(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for i := range found {
			q.After = &found[i].Endpoint
			clusters = append(clusters, q.After.Cluster)
			if found[i].Version != b.Version(q.After.Cluster) {
				t.Errorf("of the past: %+v", found[i])
			}
		}
	}
	return clusters
}

func eventsOf(t *testing.T, b *Backend, q api.RecordedEventQuery) (clusters []string) {
	t.Helper()
	for {
		found, next, err := b.RecordedEvents(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			clusters = append(clusters, found[i].Cluster)
		}
		if q.After = next; next == 0 {
			return clusters
		}
	}
}
