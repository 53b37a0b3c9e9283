package query

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/sample"
)

// kept is a fake whose snapshots are made as those of a core, by a goroutine that steps when
// they are due.
type kept struct {
	*fake
	*Snapshots
	steps  int
	looked []string // clusters, in order
	stop   chan struct{}
}

// keeping runs a test with clusters of so many endpoints, in virtual time.
func keeping(t *testing.T, sizes []int, run func(t *testing.T, k *kept)) {
	synctest.Test(t, func(t *testing.T) {
		var clusters []*source.Cluster
		for n, size := range sizes {
			addresses := make([]string, size)
			for i := range addresses {
				addresses[i] = fmt.Sprintf("10.%d.%d.%d:80", n, i/250, i%250)
			}
			clusters = append(clusters, sample.Web(fmt.Sprint("c", n), addresses...))
		}
		k := &kept{fake: newFake(clusters...), Snapshots: NewSnapshots(), stop: make(chan struct{})}
		defer close(k.stop)
		go k.run()
		run(t, k)
	})
}

func (k *kept) run() {
	for {
		select {
		case <-k.Due():
			k.fake.mu.Lock()
			k.steps++
			k.Step(k)
			k.fake.mu.Unlock()
		case <-k.stop:
			return
		}
	}
}

// BlockedReason notes which cluster is looked at.
func (k *kept) BlockedReason(c *catalog.Cluster) string {
	k.looked = append(k.looked, c.Source.Name)
	return k.blocked
}

// do changes the fake, and returns which clusters were looked at and in how many steps since
// the last call.
func (k *kept) do(change func()) (looked []string, steps int) {
	k.fake.mu.Lock()
	defer k.fake.mu.Unlock()
	looked, steps = k.looked, k.steps
	k.looked, k.steps = nil, 0
	slices.Sort(looked)
	change()
	return looked, steps
}

// TestASnapshotLooksAtWhatHasChanged, and shares the rest with the one before.
func TestASnapshotLooksAtWhatHasChanged(t *testing.T) {
	keeping(t, []int{3, 2, 1}, func(t *testing.T, k *kept) {
		first, _ := k.Newer(t.Context(), k.stop)
		if looked, _ := k.do(func() {
			delete(k.clusters, "c0")
			k.clusters["b"] = newFake(sample.Web("b", "10.0.0.1:80")).clusters["b"]
			k.turn("c1", 0, health.Unhealthy)
			for _, name := range []string{"c0", "b", "c1", "c1", "never"} {
				k.Change(name)
			}
		}); !slices.Equal(looked, []string{"c0", "c1", "c2"}) {
			t.Errorf("the first one looked at %q", looked)
		}
		second, _ := k.Newer(t.Context(), k.stop)
		if looked, _ := k.do(func() {}); !slices.Equal(looked, []string{"b", "c1"}) {
			t.Errorf("the second one looked at %q", looked)
		}
		var names []string
		for _, r := range second.rows {
			names = append(names, r.name())
		}
		if !slices.Equal(names, []string{"b", "c1", "c2"}) || second.find("c2") != first.find("c2") || second.find("c1") == first.find("c1") {
			t.Errorf("it has %q", names)
		}
		if len(first.rows) != 3 || first.find("c0") == nil || first.find("b") != nil {
			t.Error("the first one has changed")
		}
		if third, _ := k.Newer(t.Context(), k.stop); third == second || &third.rows[0] != &second.rows[0] {
			t.Error("nothing has changed, and the third one has rows of its own")
		}
	})
}

// TestWhatIsNotCheckedIsLookedAtAgain as long as that lasts, since the reason depends on more.
func TestWhatIsNotCheckedIsLookedAtAgain(t *testing.T) {
	keeping(t, []int{1, 1}, func(t *testing.T, k *kept) {
		k.do(func() { k.stranded = map[string]string{"10.1.0.0:80": "no checker is connected"} })
		_, _ = k.Newer(t.Context(), k.stop)
		k.do(func() { k.stranded["10.1.0.0:80"] = "2 checkers are too far away" })
		now, _ := k.Newer(t.Context(), k.stop)
		if got := now.find("c1").stranded; len(got) != 1 || got[0].Reason != "2 checkers are too far away" {
			t.Errorf("%+v", got)
		}
		k.do(func() { k.stranded = nil })
		_, _ = k.Newer(t.Context(), k.stop)
		k.do(func() {})
		_, _ = k.Newer(t.Context(), k.stop)
		if looked, _ := k.do(func() {}); len(looked) != 0 {
			t.Errorf("looked at %q", looked)
		}
	})
}

// TestStepsOfASnapshotAreBounded: of a large fleet it takes several.
func TestStepsOfASnapshotAreBounded(t *testing.T) {
	keeping(t, []int{stepCost, stepCost / 2, stepCost / 2, 1, stepCost}, func(t *testing.T, k *kept) {
		now, err := k.Newer(t.Context(), k.stop)
		if looked, steps := k.do(func() {}); err != nil || len(now.rows) != 5 || len(looked) != 5 || steps < 3 || steps > 5 {
			t.Errorf("%d rows by %d looks in %d steps, %v", len(now.rows), len(looked), steps, err)
		}
	})
}

// TestThoseWhoAskAtOnceShareASnapshot, which is made in one step here.
func TestThoseWhoAskAtOnceShareASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(sample.Web("web", "10.0.0.1:80")), NewSnapshots()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if now, err := s.Newer(t.Context(), nil); now == nil || err != nil {
					t.Error(now, err)
				}
			})
		}
		synctest.Wait()
		<-s.Due()
		s.Step(f)
		all.Wait()
		select {
		case <-s.Due():
			t.Error("another one is to be made")
		default:
		}
	})
}

// TestChangesThatNobodyAsksForAreBounded: a snapshot is made when there are too many.
func TestChangesThatNobodyAsksForAreBounded(t *testing.T) {
	keeping(t, []int{1}, func(t *testing.T, k *kept) {
		_, _ = k.Newer(t.Context(), k.stop)
		for n := range 10 * mostChanged {
			k.do(func() { k.Change(fmt.Sprint("gone", n)) })
			if n%100 == 0 {
				synctest.Wait()
			}
			noted := 0
			k.do(func() { noted = len(k.Snapshots.changed) })
			if noted > mostChanged+200 {
				t.Fatalf("%d clusters are noted", noted)
			}
		}
	})
}

// TestWhoWaitsForTheNextSnapshotGetsNoOlderOne, however long the core takes.
func TestWhoWaitsForTheNextSnapshotGetsNoOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(sample.Web("web", "10.0.0.1:80")), NewSnapshots()
		s.want()
		s.Step(f)
		older := s.latest.Load()
		next := make(chan *Snapshot, 1)
		go func() {
			now, err := s.Next(t.Context(), nil)
			if err != nil {
				t.Error(err)
			}
			next <- now
		}()
		time.Sleep(time.Minute)
		if len(next) > 0 {
			t.Fatal("it did not wait")
		}
		s.Step(f)
		if now := <-next; now == older {
			t.Error("it has the older one")
		}
	})
}
