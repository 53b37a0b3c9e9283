package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/source/sample"
	"hdsd/store"
)

// flapping is a core whose endpoints change between the questions that it answers,
// with a real history.
type flapping struct {
	*fake
	*Backend
	now         time.Time
	transitions []health.Transition
}

func newFlapping(t *testing.T, endpoints, rounds int) *flapping {
	history, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = history.Close() })
	var addresses []string
	for i := range endpoints {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d:80", i/256, i%256))
	}
	half := len(addresses) / 2
	f := &flapping{fake: newFake(sample.Web("api", addresses[:half]...), sample.Web("web", addresses[half:]...)), now: time.Now()}
	f.Backend = New(Options{Core: f.fake, Store: history})
	random := rand.New(rand.NewPCG(1, 2))
	f.answered = func() {
		if rounds > 0 {
			rounds--
			f.flip(random)
		}
	}
	return f
}

// flip changes some endpoints.
func (f *flapping) flip(random *rand.Rand) {
	for _, name := range f.Names() {
		k := f.clusters[name]
		for range 10 {
			e := &k.Endpoints[random.IntN(len(k.Endpoints))]
			f.change(e.Key(), []health.Status{health.Healthy, health.Unhealthy, health.Timeout}[random.IntN(3)])
		}
	}
}

// change changes the health of an endpoint.
func (f *flapping) change(key health.Endpoint, to health.Status) {
	f.now = f.now.Add(time.Millisecond)
	from := f.status[key]
	if from == to {
		return
	}
	t := health.Transition{Time: f.now, Endpoint: key, From: from, To: to, Reason: "it changes"}
	f.status[key], f.changed[key] = to, health.Verdict{Status: to, Since: f.now, Reason: t.Reason}
	f.transitions = append(f.transitions, t)
	f.Store.Append([]health.Transition{t})
}

// observer watches, and checks that what it sees is one story.
type observer struct {
	f       *flapping
	query   api.WatchQuery
	state   map[health.Endpoint]health.Status
	changes []health.Transition
}

// see watches until it has seen so many changes, or all up to end.
func (w *observer) see(ctx context.Context, atMost int, end store.Place) error {
	watcher, err := w.f.Watch(ctx, w.query)
	if err != nil {
		return err
	}
	defer watcher.Close()
	for len(w.changes) < atMost {
		if at, err := w.f.Store.Place(w.query.Token); err == nil && at >= end {
			return nil
		}
		batch, err := watcher.Next(ctx, 50+100*(len(w.changes)%3))
		if err != nil {
			return err
		}
		for _, s := range batch.Events {
			switch {
			case s.Endpoint != nil && w.query.Token == "":
				w.state[s.Endpoint.Endpoint] = s.Endpoint.Verdict.Status
				continue
			case s.Synced && w.query.Token == "":
			case s.Transition != nil && w.query.Token != "" && s.Token != "":
				w.changes = append(w.changes, *s.Transition)
			default:
				return fmt.Errorf("out of turn: %+v", s)
			}
			w.query.Token = s.Token
			if len(w.changes) == atMost {
				return nil
			}
		}
	}
	return nil
}

// verify compares with all that happened.
func (w *observer) verify(all []health.Transition) error {
	var wanted []health.Transition
	for _, t := range all {
		if w.query.Cluster == "" || w.query.Cluster == t.Endpoint.Cluster {
			t.Time = t.Time.Round(0).UTC()
			wanted = append(wanted, t)
		}
	}
	before := len(wanted) - len(w.changes)
	if before < 0 {
		return fmt.Errorf("%d changes seen, %d happened", len(w.changes), len(wanted))
	}
	for i, t := range w.changes {
		if want := wanted[before+i]; t.Endpoint != want.Endpoint || t.To != want.To || !t.Time.Equal(want.Time) {
			return fmt.Errorf("change %d is %+v, want %+v", i, t, want)
		}
	}
	state := map[health.Endpoint]health.Status{}
	for _, k := range w.f.clusters {
		for _, e := range k.Endpoints {
			if w.query.Cluster == "" || w.query.Cluster == e.Key().Cluster {
				state[e.Key()] = health.Unknown
			}
		}
	}
	for _, t := range wanted[:before] {
		state[t.Endpoint] = t.To
	}
	if diff := cmp.Diff(state, w.state); diff != "" {
		return fmt.Errorf("the present state was not that before the first change: %s", diff)
	}
	return nil
}

// TestWatchersSeeOneStory holds that the state that a watcher is shown and the
// changes after it add up to all that happened, whenever it comes and goes.
func TestWatchersSeeOneStory(t *testing.T) {
	const watchers, rounds = 9, 20
	f := newFlapping(t, 1200, rounds) // two pages
	seen := make([]*observer, watchers)
	var group sync.WaitGroup
	for i := range seen {
		w := &observer{f: f, state: map[health.Endpoint]health.Status{}}
		if i%3 == 2 {
			w.query.Cluster = "web"
		}
		seen[i] = w
		group.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(i)))
			for range random.IntN(8) { // so that they come at different times
				if err := f.Ask(t.Context(), func(State) {}); err != nil {
					t.Error(err)
				}
			}
			for range random.IntN(4) { // is cut off
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				err := w.see(ctx, len(w.changes)+random.IntN(300), math.MaxUint64)
				cancel()
				if w.query.Token == "" { // nothing to resume from
					clear(w.state)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("watcher %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	for range rounds { // what is left of them
		if err := f.Ask(t.Context(), func(State) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ends := map[string]store.Place{} // of what each watches
	all, err := f.Store.After(0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		ends[""], ends[r.Transition.Endpoint.Cluster] = r.Place, r.Place
	}
	for i, w := range seen {
		group.Go(func() {
			if err := w.see(t.Context(), 1<<30, ends[w.query.Cluster]); err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
		})
	}
	group.Wait()
	watcher, err := f.Watch(t.Context(), api.WatchQuery{Token: seen[0].query.Token})
	if err != nil {
		t.Fatal(err)
	}
	close(f.done)
	if _, err := watcher.Next(t.Context(), 100); !errors.Is(err, api.ErrStopping) {
		t.Errorf("when the core stops: %v", err)
	}
	watcher.Close()
	for i, w := range seen {
		if err := w.verify(f.transitions); err != nil {
			t.Errorf("watcher %d: %v", i, err)
		}
	}
	if f.Watchers() != 0 || f.tail.changes != nil || f.tail.batches != nil || len(f.listings.kept)+len(f.listings.open) > 0 {
		t.Errorf("%d watchers are left, %d changes and %d pages kept, %d listings open", f.Watchers(), len(f.tail.changes), len(f.listings.kept), len(f.listings.open))
	}
}

// TestChangesWhileAWatchBeginsAreExplained as the endpoints listed before them are.
func TestChangesWhileAWatchBeginsAreExplained(t *testing.T) {
	f := newFlapping(t, 4, 0)
	f.explain = func(e *api.EndpointHealth) {
		e.Published = &api.Published{Status: health.Unknown, Reason: "frozen"}
		if e.Endpoint.Cluster == "web" {
			e.Override, e.Voted = &api.Override{Author: "ann"}, &health.Verdict{Status: health.Healthy}
		}
	}
	for _, name := range f.Names() {
		for i := range f.clusters[name].Endpoints {
			f.change(f.clusters[name].Endpoints[i].Key(), health.Healthy)
		}
	}
	for i := range f.clusters["web"].Endpoints {
		f.change(f.clusters["web"].Endpoints[i].Key(), health.Draining)
	}
	f.change(f.clusters["api"].Endpoints[1].Key(), health.Unknown)
	f.clusters["api"] = newFake(sample.Web("api", "10.0.0.0:80")).clusters["api"]
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, until, err := f.Store.Latest(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.tail.enter()
	w := &watcher{backend: f.Backend, visible: access.AllClusters(), progress: progress{begun: true, listed: true, until: until}}
	batch, err := w.Next(t.Context(), 100)
	w.Close()
	if err != nil || len(batch.Events) != 4+2+1+1 {
		t.Fatalf("%d seen, %v", len(batch.Events), err)
	}
	seen := batch.Events
	for i, want := range []string{"HEALTHY UNKNOWN", "", "HEALTHY UNKNOWN", "HEALTHY UNKNOWN", "DRAINING UNKNOWN under HEALTHY", "DRAINING UNKNOWN under HEALTHY", "UNKNOWN gone"} {
		e := seen[i].Endpoint
		got := e.Verdict.Status.String()
		switch {
		case e.Published != nil:
			got += " " + e.Published.Status.String()
		case i == 6:
			got += " " + e.Verdict.Reason
		}
		if e.Voted != nil {
			got += " under " + e.Voted.Status.String()
		}
		if want != "" && got != want {
			t.Errorf("%d: %v is seen as %s, want %s", i, e.Endpoint, got, want)
		}
	}
}

// TestAFilteredWatch shows what is not healthy, and what becomes or was so.
func TestAFilteredWatch(t *testing.T) {
	f := newFlapping(t, 4, 0)
	keys := make([]health.Endpoint, 0, 4)
	for _, name := range f.Names() {
		for _, e := range f.clusters[name].Endpoints {
			keys = append(keys, e.Key())
		}
	}
	f.change(keys[0], health.Unhealthy)
	f.change(keys[1], health.Healthy)
	f.change(keys[2], health.Healthy)
	f.change(keys[3], health.Degraded)
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := f.Watch(t.Context(), api.WatchQuery{Filter: health.Filter{Unhealthy: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := func() (seen string) {
		batch, err := w.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			switch {
			case e.Endpoint != nil:
				seen += e.Endpoint.Endpoint.Address + " " + e.Endpoint.Verdict.Status.String() + ";"
			case e.Transition != nil:
				seen += e.Transition.Endpoint.Address + " to " + e.Transition.To.String() + ";"
			default:
				seen += "synced;"
			}
		}
		return seen
	}
	if got := next() + next(); got != keys[0].Address+" UNHEALTHY;synced;" {
		t.Errorf("first %s", got)
	}
	f.change(keys[1], health.Degraded)
	f.change(keys[0], health.Healthy)
	f.change(keys[1], health.Timeout)
	want := keys[0].Address + " to HEALTHY;" + keys[1].Address + " to TIMEOUT;"
	got := ""
	for len(got) < len(want) {
		got += next()
	}
	if got != want {
		t.Errorf("then %s, want %s", got, want)
	}
}

// TestALateCallLosesNothing: a call whose context has ended takes nothing away.
func TestALateCallLosesNothing(t *testing.T) {
	f := newFlapping(t, 4, 0)
	watcher, err := f.Watch(t.Context(), api.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late := func() {
		if seen, err := watcher.Next(ended, 100); seen != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("a late call gives %v, %v", seen, err)
		}
	}
	synced := false
	for !synced {
		seen, err := watcher.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		synced = seen.Events[len(seen.Events)-1].Synced
	}
	late()
	key := f.clusters["web"].Endpoints[0].Key()
	f.change(key, health.Unhealthy)
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.tail.leads(t.Context(), f.tail.round, nil); err != nil { // as another watcher may
		t.Fatal(err)
	}
	late()
	patient, enough := context.WithTimeout(t.Context(), 10*time.Second)
	defer enough()
	seen, err := watcher.Next(patient, 100)
	if err != nil || len(seen.Events) != 1 || seen.Events[0].Transition.Endpoint != key {
		t.Errorf("after late calls: %v, %v", seen, err)
	}
}

// TestResumesKeepLittle: a client that resumes at place after place, and goes, leaves no batches
// behind without an end.
func TestResumesKeepLittle(t *testing.T) {
	f := newFlapping(t, 2000, 0)
	stays, err := f.Watch(t.Context(), api.WatchQuery{})
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	next := func(w api.Watcher) *api.Batch {
		t.Helper()
		b, err := w.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for b := next(stays); !b.Events[len(b.Events)-1].Synced; {
		b = next(stays)
	}
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	_, _ = stays.Next(soon, 100) // the tail begins here
	cancel()
	key := f.clusters["api"].Endpoints[0].Key()
	for range keptBatches + 100 {
		f.now = f.now.Add(time.Millisecond)
		f.Store.Append([]health.Transition{{Time: f.now, Endpoint: key, From: health.Healthy, To: health.Unhealthy}})
	}
	if err := f.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for len(tokens) < keptBatches+100 {
		for _, e := range next(stays).Events {
			tokens = append(tokens, e.Token)
		}
	}
	for _, token := range tokens[:len(tokens)-1] {
		w, err := f.Watch(t.Context(), api.WatchQuery{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		next(w)
		w.Close()
	}
	if kept := len(f.tail.batches); kept == 0 || kept > keptBatches {
		t.Errorf("%d batches are kept", kept)
	}
}

// TestAWatchOfAClusterHasItsVersions, and no cluster whose name only looks like one.
func TestAWatchOfAClusterHasItsVersions(t *testing.T) {
	may := access.AllClusters().WithVersions(func(own string) string {
		if own == "web#2" {
			return "web"
		}
		return own
	})
	for own, want := range map[string]bool{"web": true, "web#2": true, "web#3": false} {
		change := &health.Transition{Endpoint: health.Endpoint{Cluster: own}, To: health.Unhealthy}
		if got := wants(&api.WatchQuery{Cluster: "web"}, may, change); got != want {
			t.Errorf("a watch of web has a change of %s: %t, want %t", own, got, want)
		}
	}
}
