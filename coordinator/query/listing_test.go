package query

import (
	"sync"
	"testing"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
)

// shown watches until it is synced, and counts how often it is shown each endpoint.
func shown(t *testing.T, f *flapping, pause func(pages int)) map[health.Endpoint]int {
	t.Helper()
	w, err := f.Watch(t.Context(), api.WatchQuery{})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer w.Close()
	times := map[health.Endpoint]int{}
	for pages := 0; ; pages++ {
		batch, err := w.Next(t.Context(), 100)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, e := range batch.Events {
			if e.Synced {
				return times
			}
			times[e.Endpoint.Endpoint]++
		}
		pause(pages)
	}
}

// TestACrowdCostsTheCoreLittle: those who begin to watch at about the same time share
// what the core is asked.
func TestACrowdCostsTheCoreLittle(t *testing.T) {
	const watchers, endpoints = 200, 1200
	f := newFlapping(t, endpoints, 0)
	var mu sync.Mutex
	asked := 0
	f.answered = func() { mu.Lock(); asked++; mu.Unlock() }
	var begun, all sync.WaitGroup
	begun.Add(1)
	for range watchers {
		all.Go(func() {
			begun.Wait()
			times := shown(t, f, func(int) {})
			if len(times) != endpoints {
				t.Errorf("%d endpoints of %d were shown", len(times), endpoints)
			}
			for e, n := range times {
				if n != 1 {
					t.Errorf("%v was shown %d times", e, n)
				}
			}
		})
	}
	begun.Done()
	all.Wait()
	if alone := endpoints/listPage + 1; asked < alone || asked > watchers*alone/4 {
		t.Errorf("the core was asked %d times; one watcher alone asks %d times", asked, alone)
	}
}

// TestWhoFallsBehindGoesOnWhereItWas with another listing: it is shown everything once.
func TestWhoFallsBehindGoesOnWhereItWas(t *testing.T) {
	f := newFlapping(t, 600, 0)
	times := shown(t, f, func(pages int) {
		if pages == 1 || pages == 5 { // others read on, and the pages are not kept so long
			shown(t, f, func(int) {})
			f.listings.forget()
		}
	})
	if len(times) != 600 {
		t.Errorf("%d endpoints were shown", len(times))
	}
	for e, n := range times {
		if n != 1 {
			t.Errorf("%v was shown %d times", e, n)
		}
	}
}

// TestPagesAreBounded however many there are.
func TestPagesAreBounded(t *testing.T) {
	f := newFlapping(t, 1200, 0)
	l := f.listings.join(start{}, access.AllClusters())
	for range 3 * pagesKept {
		f.listings.keep(l, &page{})
	}
	if len(f.listings.kept) != pagesKept || len(l.pages) != pagesKept || l.first != 2*pagesKept {
		t.Errorf("%d pages are kept, of the listing %d from %d on", len(f.listings.kept), len(l.pages), l.first)
	}
	if p, made := f.listings.find(l, 0); p != nil || !made {
		t.Error("the first page is kept")
	}
}

// TestWhoMaySeeSomeClustersSharesNothing: neither a listing nor what is new.
func TestWhoMaySeeSomeClustersSharesNothing(t *testing.T) {
	f := newFlapping(t, 4, 0)
	some, all := access.Clusters{}, access.AllClusters()
	if one := f.listings.join(start{}, all); one != f.listings.join(start{}, all) || one == f.listings.join(start{}, some) {
		t.Error("listings are shared by the wrong watchers")
	}
	f.tail.enter()
	defer f.tail.leave()
	query := &api.WatchQuery{}
	_, place, _, err := f.tail.after(0, 100, query, all)
	if err != nil {
		t.Fatal(err)
	}
	f.change(f.clusters["web"].Endpoints[0].Key(), health.Healthy)
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.tail.mu.Lock()
	err = f.tail.refresh()
	f.tail.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one is kept to be shared
		if seen, _, _, err := f.tail.after(place, 100, query, all); err != nil || seen == nil || len(seen.Events) != 1 {
			t.Errorf("who may see all sees %v, %v", seen, err)
		}
		if seen, to, _, err := f.tail.after(place, 100, query, some); err != nil || seen != nil || to == place {
			t.Errorf("who may see none sees %v, up to %v, %v", seen, to, err)
		}
	}
}
