package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/health"
	"hdsd/log"
)

// day is when the tests' transitions happen.
var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// errorLog collects the errors that OnError gets.
type errorLog struct {
	mu  sync.Mutex
	all []error
}

func (c *errorLog) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, err)
}

func (c *errorLog) has(target error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Is(errors.Join(c.all...), target)
}

// open opens a small store whose clock stands still at day. Only benchmarks wait until the disk
// has what it is given: tests here do not take the power away, test/crash does.
func open(t testing.TB, dir string, change ...func(*Options)) *Store {
	t.Helper()
	_, test := t.(*testing.T)
	o := Options{
		noSync:  test,
		OnError: func(err error) { t.Errorf("OnError: %v", err) },
		now:     func() time.Time { return day },
		mapSize: 1,
	}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wall is a clock that tests set.
type wall struct{ nanos atomic.Int64 }

func (w *wall) set(to time.Time) { w.nanos.Store(to.UnixNano()) }

// keep sets the retention to an hour, and makes this clock the only one.
func (w *wall) keep(o *Options) {
	o.Retention, o.now = time.Hour, func() time.Time { return time.Unix(0, w.nanos.Load()) }
	o.uptime = func() time.Duration { return o.now().Sub(day) }
}

func flush(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func stateOf(t testing.TB, s *Store) log.State {
	t.Helper()
	found, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func queryAll(t testing.TB, s *Store, q Query) []health.Transition {
	t.Helper()
	var all []health.Transition
	for {
		page, next, err := s.Transitions(q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if q.Token = next; next == "" {
			return all
		}
	}
}

func endpoint(cluster, zone, address string) health.Endpoint {
	return health.Endpoint{Cluster: cluster, Locality: health.Locality{Region: "eu", Zone: zone}, Address: address}
}

// flip returns the n-th transition of an endpoint, a second after the one before.
func flip(e health.Endpoint, n int) health.Transition {
	from, to := health.Healthy, health.Unhealthy
	if n%2 == 0 {
		from, to = to, from
	}
	at := day.Add(time.Duration(n) * time.Second)
	return health.Transition{
		Time: at, Endpoint: e, From: from, To: to, Reason: fmt.Sprintf("2 of 3 checkers say %v (%d)", to, n),
		Observations: []health.Observation{
			{Checker: "checker-1", Status: to, HTTPStatusCode: 503, Time: at.Add(-time.Millisecond)},
			{Checker: "checker-2", Status: to, Time: at.Add(-time.Second)},
			{Checker: "checker-3", Status: from, Disbelieved: "its zone is cut off"},
		},
	}
}

func flips(n int) []health.Transition {
	var all []health.Transition
	for i := range n {
		all = append(all, flip(endpoint(fmt.Sprint("web-", i%3), "a", fmt.Sprintf("10.0.0.%d:80", i%5)), i))
	}
	return all
}

func TestTransitionsComeBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := flips(20)
	s.Append(want[:7])
	s.Append(want[7:])
	flush(t, s)
	if diff := cmp.Diff(want, queryAll(t, s, Query{})); diff != "" {
		t.Error("before closing:", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if diff := cmp.Diff(want, queryAll(t, s, Query{Limit: 3})); diff != "" {
		t.Error("after opening again:", diff)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestCloseCommitsTheLastGroup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.Append(flips(3 * groupSize))
	s.intake.savePlan(map[string][]health.Hash{"checker-1": {3, 1, 2}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Append(flips(5))
	if got := s.Stats().Dropped; got != 5 {
		t.Errorf("appended after Close: %d dropped", got)
	}
	if _, _, err := s.Transitions(Query{}); !errors.Is(err, ErrClosed) {
		t.Error("query after Close:", err)
	}
	s = open(t, dir)
	if got := len(queryAll(t, s, Query{})); got != 3*groupSize {
		t.Errorf("%d transitions", got)
	}
	if diff := cmp.Diff(map[string][]health.Hash{"checker-1": {1, 2, 3}}, stateOf(t, s).Plan); diff != "" {
		t.Error(diff)
	}
}

func TestCurrentIsTheLastTransition(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	all := flips(40)
	all[39].Observations = nil
	want := map[health.Hash]log.Health{}
	for _, tr := range all {
		want[tr.Endpoint.Hash()] = log.Health{Endpoint: tr.Endpoint, Status: tr.To, Since: tr.Time, Reason: tr.Reason}
	}
	s.Append(all)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if diff := cmp.Diff(want, stateOf(t, s).Current); diff != "" {
		t.Error(diff)
	}
}

func TestPlan(t *testing.T) {
	s := open(t, t.TempDir())
	s.intake.savePlan(map[string][]health.Hash{"a": {1 << 63, 5}, "b": {7}, "": {9}, "c": {}})
	flush(t, s)
	s.intake.savePlan(map[string][]health.Hash{"a": {1}, "d": {4}})
	s.intake.savePlan(map[string][]health.Hash{"a": {2, 1}, "b": nil, "unknown": nil})
	flush(t, s)
	want := map[string][]health.Hash{"a": {1, 2}, "": {9}, "c": {}, "d": {4}}
	if diff := cmp.Diff(want, stateOf(t, s).Plan); diff != "" {
		t.Error(diff)
	}
}

func TestClustersAreRemembered(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.rememberClusters([]string{"seen", "seen too", "seen"})
	s.Append([]health.Transition{flip(endpoint("flipped", "a", "x"), 1)})
	for _, name := range []string{"seen", "seen too", "flipped"} {
		if !s.KnownCluster(name) {
			t.Errorf("%q is not known at once", name)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for name, want := range map[string]bool{"seen": true, "seen too": true, "flipped": true, "other": false, "": false} {
		if s.KnownCluster(name) != want {
			t.Errorf("%q: known is %v after opening again", name, !want)
		}
	}
	if diff := cmp.Diff([]string{"flipped", "seen", "seen too"}, stateOf(t, s).Clusters); diff != "" {
		t.Error(diff)
	}
}

func TestFolderAndFileArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, dir)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, fileName): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(found) > 0 {
		t.Errorf("%v is left over", found)
	}
}

// TestGroups counts transactions in virtual time: a group is committed after 10 ms.
func TestGroups(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir)
		synctest.Wait()
		transactions := func() (n int) {
			inspect(t, s, func(tx *bolt.Tx) { n = tx.ID() })
			return n
		}
		begin := transactions()
		for range 9 {
			s.Append(flips(1))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if got := transactions() - begin; got != 0 {
			t.Errorf("after 9 ms: %d transactions", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := transactions() - begin; got != 1 {
			t.Errorf("after 10 ms: %d transactions", got)
		}
		s.Append(flips(2 * groupSize))
		for want := range 3 {
			synctest.Wait()
			if got := transactions() - begin - 1; got != want {
				t.Errorf("two full groups: %d transactions after %d ms", got, want*10)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	const count = 3*pruneSize + 10
	var now wall
	now.set(day.Add(count * time.Second))
	s := open(t, dir, now.keep)
	s.Append(flips(count))
	flush(t, s)
	now.set(day.Add(time.Hour + (count-5)*time.Second))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, dir, now.keep)
	firstPrune(t, s)
	if diff := cmp.Diff(flips(count)[count-5:], queryAll(t, s, Query{})); diff != "" {
		t.Error(diff)
	}
	for _, q := range []Query{{Cluster: "web-1"}, {Address: "10.0.0.1:80"}} {
		if got := len(queryAll(t, s, q)); got > 2 {
			t.Errorf("%+v: %d transitions", q, got)
		}
	}
	if current := stateOf(t, s).Current; len(current) != 15 {
		t.Errorf("current health of %d endpoints, want all 15", len(current))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	now.set(day.AddDate(1, 0, 0))
	prune(t, s)
	if diff := cmp.Diff(flips(count)[count-1:], queryAll(t, s, Query{})); diff != "" {
		t.Error("the newest stays:", diff)
	}
}

// TestManyAreForgotten: more endpoints and events than one step looks at.
func TestManyAreForgotten(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	const endpoints, events = currentLooked + pruneSize + 10, 3*eventsLooked + 10
	for n := range endpoints {
		s.Append([]health.Transition{flip(endpoint("web", "a", fmt.Sprint(n)), 0)})
	}
	for n := range events {
		s.AppendEvents([]Event{{Time: day.Add(time.Duration(n)), Kind: storev1.EventKind_CHECKER_LOST}})
	}
	young := Event{Time: day.Add(-time.Hour), Kind: storev1.EventKind_NOTE, Text: "said to be older than all"}
	flush(t, s)
	now.set(day.Add(2 * time.Hour))
	s.AppendEvents([]Event{young})
	flush(t, s)
	prune(t, s)
	if left, _, err := s.Events(EventQuery{Limit: events}); err != nil || len(left) != 1 || left[0].Event != young {
		t.Errorf("%d events are left: %v", len(left), err)
	}
	s.Forget(func(health.Hash) bool { return false })
	for rest := false; !rest; {
		if err := s.writer.call(t.Context(), func() { rest = s.intake.idle() && !s.writer.pruner.busy() }); err != nil {
			t.Fatal(err)
		}
	}
	if left := stateOf(t, s).Current; len(left) != 1 { // that of the newest transition
		t.Errorf("%d endpoints are left", len(left))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestAPassLooksAtAll: what somebody asks for in the middle of a pass is a pass of its own.
func TestAPassLooksAtAll(t *testing.T) {
	var now wall
	now.set(day)
	s := open(t, t.TempDir(), now.keep)
	firstPrune(t, s)
	const count = 2*eventsLooked + 10
	for n := range count {
		s.AppendEvents([]Event{{Time: day.Add(time.Duration(n)), Kind: storev1.EventKind_CHECKER_LOST}})
	}
	flush(t, s)
	err := s.writer.call(t.Context(), func() {
		s.intake.askPrune()
		s.writer.pruner.step(0) // looks at some, which are young
		now.set(day.Add(2 * time.Hour))
		s.time.look()
	})
	if err != nil {
		t.Fatal(err)
	}
	prune(t, s)
	if left, _, err := s.Events(EventQuery{Limit: count}); err != nil || len(left) != 0 {
		t.Errorf("%d events are left: %v", len(left), err)
	}
}

func TestForget(t *testing.T) {
	var now wall
	now.set(day.Add(2 * time.Hour))
	s := open(t, t.TempDir(), now.keep)
	old, kept, fresh := endpoint("web", "a", "old"), endpoint("web", "a", "kept"), endpoint("web", "a", "fresh")
	recent := flip(fresh, 1)
	recent.Time = day.Add(2 * time.Hour)
	s.Append([]health.Transition{flip(old, 1), flip(kept, 2), recent})
	flush(t, s)
	prune(t, s)
	asked := make(chan health.Hash, 10)
	s.Forget(func(h health.Hash) bool { asked <- h; return h == kept.Hash() })
	for range 3 {
		<-asked
	}
	prune(t, s) // comes after it
	got := stateOf(t, s).Current
	if len(got) != 2 {
		t.Errorf("%d endpoints, want the known one and the one that has a transition", len(got))
	}
	if _, there := got[old.Hash()]; there {
		t.Error("the old endpoint is still there")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
