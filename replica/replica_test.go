package replica

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"hdsd/health"
	"hdsd/log"
	"hdsd/log/batch"
	"hdsd/machine"
)

// entryOf returns an entry with a number of records.
func entryOf(records int) *log.Entry { return &log.Entry{Unvoted: make([]health.Hash, records-1)} }

func TestStepsStayTogetherInLimitedBatches(t *testing.T) {
	c := committer{interval: 5 * time.Millisecond, patience: time.Second, limit: 1 << 20, max: maxRecords}
	c.begin(start, 7, 41)
	for _, entries := range [][]*log.Entry{
		{entryOf(100), entryOf(200)}, {entryOf(batchRecords - 300)}, {entryOf(1)}, {entryOf(2 * batchRecords)}, {entryOf(10)}, {entryOf(20)},
	} {
		c.add(start, entries)
	}
	now, wanted := start, []int{3, 1, 1, 2} // entries
	for i, want := range wanted {
		commit, ok, err := c.commit(now)
		if !ok || err != nil || commit.Epoch != 7 || commit.Sequence != 42+uint64(i) {
			t.Fatalf("%+v, %t, %v", commit, ok, err)
		}
		var j batch.Joiner
		if entries, err := j.Add(commit.Payload); len(entries) != want || err != nil {
			t.Errorf("batch %d has %d entries, %v", i, len(entries), err)
		}
		if _, ok, _ := c.commit(now.Add(time.Hour)); ok {
			t.Error("a second commit in flight")
		}
		c.committed(now, 7, commit.Sequence)
		if _, ok, _ := c.commit(now); ok {
			t.Error("a commit before the interval")
		}
		now = now.Add(5 * time.Millisecond)
	}
	if c.done != 6 || c.records != 0 || !c.idle() {
		t.Errorf("%d steps done, %d records", c.done, c.records)
	}
}

func TestEventsAreRecords(t *testing.T) {
	if count := countRecords(&log.Entry{Events: make([]log.Event, 7)}); count != 8 {
		t.Errorf("an entry with 7 events has %d records", count)
	}
}

func TestACommitIsRepeatedUntilItsFateIsKnown(t *testing.T) {
	c := committer{patience: time.Second, limit: 100, max: maxRecords}
	c.begin(start, 7, 0)
	noise := &log.Entry{}
	for i := range 100 {
		noise.Clusters = append(noise.Clusters, fmt.Sprint("cluster-", i*i*i))
	}
	c.add(start, []*log.Entry{noise})
	first, _, _ := c.commit(start)
	for range 3 {
		c.undecided(7, first.Sequence)
		if again, ok, _ := c.commit(start); !ok || again.Sequence != 1 || !bytes.Equal(again.Payload, first.Payload) {
			t.Fatalf("%+v", again)
		}
	}
	c.committed(start, 6, 1) // of another epoch
	if _, ok, _ := c.commit(start); ok || c.done != 0 {
		t.Error("the answer to another commit counts")
	}
	for sequence := uint64(1); !c.idle(); sequence++ {
		c.committed(start, 7, sequence)
		if next, ok, _ := c.commit(start); ok && next.Sequence != sequence+1 {
			t.Fatalf("frame %d after %d", next.Sequence, sequence)
		}
	}
	if c.done != 1 || c.next < 4 {
		t.Errorf("%d steps, %d frames", c.done, c.next-1)
	}
}

func TestTooManyEntriesWait(t *testing.T) {
	c := committer{patience: time.Second, limit: 1 << 20, max: 100}
	c.begin(start, 7, 0)
	if !c.add(start, []*log.Entry{entryOf(1000)}) {
		t.Error("one large step is too much")
	}
	if !c.add(start.Add(time.Second-1), []*log.Entry{entryOf(1000)}) {
		t.Error("too early")
	}
	if c.add(start.Add(time.Second), []*log.Entry{entryOf(1)}) {
		t.Error("commits are stuck, and everything waits")
	}
	c.discard()
	if !c.add(start.Add(time.Second), []*log.Entry{entryOf(50)}) {
		t.Error("little waits")
	}
}

// TestRecovery covers a replica whose log is away and comes back, also with an earlier epoch, and one that cannot read an entry.
func TestRecovery(t *testing.T) {
	r := New(Options{ID: "r1", Timing: machine.Timing{Report: time.Second}}, log.State{}, 7)
	var effects []Effect
	step := func(events ...Event) []Effect {
		effects = nil
		for _, e := range events {
			r.Step(start, e, func(e Effect) { effects = append(effects, e) })
		}
		return effects
	}
	cause := errors.New("etcd is wiped")
	link := uint64(1)
	step(Members{Leader: "r2", Epoch: 90}, LinkOpened{"r2", link}, Received{"r2", link, Welcome{Term: Term{90, 1}}})
	if found := step(LogEnded{After: 7, Err: cause}); len(found) != 1 || found[0] != (Faulted{cause}) {
		t.Fatalf("%+v", found)
	}
	if found := step(Won{Epoch: 91, Head: 7}); len(found) != 1 || found[0] != (Resign{91, cause}) {
		t.Errorf("without a log it leads: %+v", found)
	}
	if found := step(LogResumed{After: 7}); len(found) != 1 || found[0] != (Recovered{}) {
		t.Fatalf("%+v", found)
	}
	if step(Members{Leader: "r2", Epoch: 60}, Received{"r2", link, Welcome{Term: Term{60, 1}}}); r.leader.term != (Term{60, 1}) {
		t.Errorf("an earlier epoch of a restored etcd does not count: %+v", r.leader)
	}
	step(Read{Sequence: 8, Epoch: 60, Payload: []byte("no entry")})
	unread := r.fault
	if unread == nil {
		t.Fatal("it reads anything")
	}
	if found := step(LogEnded{After: 8, Err: cause}, LogResumed{After: 8}); len(found) > 0 || !errors.Is(r.fault, unread) {
		t.Errorf("it goes on after an entry that it could not read: %+v", found)
	}
}

func TestOrdersWithoutALeader(t *testing.T) {
	r := New(Options{ID: "r1", Timing: machine.Timing{Report: time.Second}}, log.State{}, 0)
	ended := map[log.OrderID]error{}
	take := func(e Effect) {
		if done, ok := e.(OrderDone); ok {
			ended[done.ID] = done.Err
		}
	}
	for i := range uint64(maxOrders + 1) {
		r.Step(start, Ordered{ID: log.OrderID{Process: 1, Number: i + 1}, Order: &machine.Unfreeze{}}, take)
	}
	if len(ended) != 1 || !errors.Is(ended[log.OrderID{Process: 1, Number: maxOrders + 1}], ErrManyOrders) {
		t.Fatal(ended)
	}
	r.Step(start.Add(orderPatience-1), Tick{}, take)
	if len(ended) != 1 {
		t.Fatal("an order ends early")
	}
	r.Step(start.Add(orderPatience), Tick{}, take)
	if len(ended) != maxOrders+1 || !errors.Is(ended[log.OrderID{Process: 1, Number: 1}], ErrNoLeader) {
		t.Fatal(len(ended))
	}
}

// TestReportsOfAQuietFollower covers that ticks after each event lead to reports no more often than the leader must hear
// of the replica: the end of each report is an event, too.
func TestReportsOfAQuietFollower(t *testing.T) {
	r := New(Options{ID: "r1", Timing: machine.Timing{Report: time.Second}}, log.State{}, 0)
	sent := 0
	take := func(e Effect) {
		if _, ok := e.(Send); ok {
			sent++
		}
	}
	r.Step(start, Members{Replicas: []string{"r1", "r2"}, Leader: "r2", Epoch: 1}, take)
	r.Step(start, LinkOpened{Replica: "r2", Link: 1}, take)
	r.Step(start, Received{Replica: "r2", Link: 1, Message: Welcome{Term: Term{Epoch: 1, Round: 1}}}, take)
	const seconds = 10
	for passed := time.Duration(0); passed < seconds*time.Second; passed += time.Millisecond {
		now := start.Add(passed)
		r.Step(now, Sent{Replica: "r2", Link: 1}, take)
		r.Step(now, Tick{}, take)
		if wait := r.Wait(now); wait > time.Second/2 {
			t.Fatalf("the next tick comes after %v", wait)
		}
	}
	if sent < 2*seconds || sent > 2*seconds+1 {
		t.Errorf("%d reports in %d seconds", sent, seconds)
	}
}

// TestOrdersOfAnEarlierTerm covers that a change of leader refuses no order before the log says that it is not in it.
func TestOrdersOfAnEarlierTerm(t *testing.T) {
	var o orders
	in, out := log.OrderID{Process: 1, Number: 1}, log.OrderID{Process: 1, Number: 2}
	o.add(start, Order{ID: in})
	o.add(start, Order{ID: out})
	if taken := o.take(Term{1, 1}, false); len(taken) != 2 || o.hasNew() {
		t.Fatal(taken)
	}
	if again := o.take(Term{1, 1}, true); len(again) != 2 {
		t.Error("a link that opens anew gets", again)
	}
	o.begin(Term{2, 1}, 5)
	if taken := o.take(Term{2, 1}, true); len(taken) != 0 {
		t.Error("the next leader gets", taken)
	}
	ended := map[log.OrderID]error{}
	end := func(position uint64) {
		o.end(start.Add(time.Hour), position, func(e Effect) { ended[e.(OrderDone).ID] = e.(OrderDone).Err })
	}
	o.refuse(Term{2, 1}, Refusal{ID: in}, func(Effect) { t.Error("the next leader refuses it") })
	if end(4); len(ended) != 0 {
		t.Error(ended)
	}
	o.read(&log.Entry{Order: in})
	if end(5); len(ended) != 2 || ended[in] != nil || !errors.Is(ended[out], ErrLeaderChanged) {
		t.Error(ended)
	}
}

func TestDamagedEntriesEndTheFollowing(t *testing.T) {
	for name, e := range map[string]Read{"a gap": {Sequence: 2}, "bytes": {Sequence: 1, Payload: []byte("no frame")}} {
		r := New(Options{ID: "r1"}, log.State{}, 0)
		faults := 0
		for range 2 {
			r.Step(start, e, func(e Effect) {
				if _, ok := e.(Faulted); ok {
					faults++
				}
			})
		}
		if faults != 1 || r.position != 0 {
			t.Errorf("%s: %d faults, position %d", name, faults, r.position)
		}
	}
}

func TestIDsRest(t *testing.T) {
	n := names{ids: map[health.Hash]health.EndpointID{}}
	first := n.acquire(start, 1)
	if again := n.acquire(start, 1); again != first {
		t.Error("an endpoint of two specifiers has two ids")
	}
	n.release(start, []health.Hash{1, 1})
	if id := n.acquire(start.Add(idRest-1), 2); id == first {
		t.Error("an id is used again too early")
	}
	if id := n.acquire(start.Add(idRest), 3); id != first || n.hash[id] != 3 {
		t.Error("an id is lost")
	}
}
