package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hdsd/assign"
	"hdsd/health"
)

const (
	report = time.Second
	grace  = 5 * time.Second
	settle = 3 * time.Second
)

// lab is a Fleet whose owner is the test. It carries out the effects, and holds
// that they keep what it mirrors in step with the plan.
type lab struct {
	testing.TB
	*Fleet
	now        time.Time
	standing   map[string]Standing
	present    map[health.EndpointID]bool
	redundancy int                        // of each; 0: 2
	unable     map[string]bool            // checkers that are not able to check anything
	doubtful   bool                       // no vote counts
	doubts     map[health.EndpointID]bool // votes on these do not count
	compared   map[string]Comparison
	beyond     map[health.EndpointID]string // a checker that is not able to check these

	votes  map[string]map[health.EndpointID]bool // expected, by checker
	rows   map[string][]health.Hash              // stored
	has    map[string][]health.EndpointID        // by the latest specifier of a checker
	sent   map[string]int                        // specifiers
	stored map[string]Established                // the same, who is established
	events []Event
	silent map[string]bool // checkers that report nothing
}

// restart is a restart of hdsd, from what it stored. It has all endpoints again.
func (l *lab) restart() { l.restartWith(options()) }

func (l *lab) restartWith(o Options) {
	lasts := l.probation.lasts
	f := New(o, l)
	f.Restore(maps.Clone(l.rows))
	f.RestoreEstablished(maps.Clone(l.stored))
	f.SetProbation(l.now, lasts)
	f.Begin(l.now)
	l.Fleet, l.votes, l.silent = f, map[string]map[health.EndpointID]bool{}, map[string]bool{}
	for _, id := range sortedKeys(l.present) {
		l.add(id)
	}
	l.do(l.Apply(l.now))
}

// newLab is a lab after its time to settle, with checkers c0, c1... of three
// zones and endpoints 0, 1... that two checkers each have to check.
func newLab(t testing.TB, o Options, checkers, endpoints int) *lab {
	l := &lab{
		TB: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), standing: map[string]Standing{}, present: map[health.EndpointID]bool{}, compared: map[string]Comparison{}, unable: map[string]bool{},
		votes: map[string]map[health.EndpointID]bool{}, rows: map[string][]health.Hash{}, stored: map[string]Established{},
		has: map[string][]health.EndpointID{}, sent: map[string]int{}, silent: map[string]bool{},
	}
	l.Fleet = New(o, l)
	l.Restore(nil)
	l.Begin(l.now)
	for i := range endpoints {
		l.add(health.EndpointID(i))
	}
	l.do(l.Apply(l.now))
	for i := range checkers {
		l.join(fmt.Sprintf("c%d", i))
	}
	l.pass(settle + 2*report)
	return l
}

func options() Options { return Options{Report: report, Grace: grace, Settle: settle} }

// Standing implements Lookup.
func (l *lab) Standing(checker string) Standing { return l.standing[checker] }

// Believes implements Lookup.
func (l *lab) Believes(id health.EndpointID, _ string) bool { return !l.doubtful && !l.doubts[id] }

// Compare implements Lookup.
func (l *lab) Compare(id health.EndpointID, checker string) Comparison {
	if l.beyond[id] == checker {
		return Unreported
	}
	return l.compared[checker]
}

// CompareVerdict implements Lookup.
func (l *lab) CompareVerdict(_ health.EndpointID, checker string) Comparison {
	return l.compared[checker]
}

// CanCheck implements Lookup.
func (l *lab) CanCheck(k *health.Checker, id health.EndpointID) bool {
	return !l.unable[k.ID] && l.present[id] && l.beyond[id] != k.ID
}

// add queues an endpoint.
func (l *lab) add(id health.EndpointID) {
	l.present[id] = true
	l.Upsert(assign.Endpoint{
		ID: id, Hash: health.Hash(id+1) * 0x9e3779b97f4a7c15, Class: l.Class(assign.Class{}), Redundancy: cmp.Or(l.redundancy, 2), Rate: 1,
	})
}

// remove queues that an endpoint goes.
func (l *lab) remove(id health.EndpointID) {
	for _, checker := range l.Remove(id) {
		l.unassign(checker, id)
	}
	delete(l.present, id)
}

// join connects a checker in the zone of the last digit of its id, of three.
func (l *lab) join(id string) {
	zone := fmt.Sprint(int(id[len(id)-1]) % 3)
	l.do(l.Connect(l.now, health.Checker{ID: id, Locality: health.Locality{Region: "r", Zone: zone}}))
}

func (l *lab) lose(ids ...string) {
	for _, id := range ids {
		l.do(l.Disconnect(l.now, id))
	}
}

// hush has checkers reject what they are sent, and hds find out.
func (l *lab) hush(ids ...string) {
	for _, id := range ids {
		l.silent[id] = true
		l.do(l.SetSilent(l.now, id, true))
	}
}

// speak has checkers report after all.
func (l *lab) speak(ids ...string) {
	for _, id := range ids {
		delete(l.silent, id)
		l.do(l.SetSilent(l.now, id, false))
	}
}

// judge changes how far checkers are believed.
func (l *lab) judge(s Standing, ids ...string) {
	for _, id := range ids {
		l.standing[id] = s
	}
	l.Reconsider()
}

// pass lets time go by.
func (l *lab) pass(d time.Duration) {
	l.Helper()
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(report / 2)
		for _, id := range slices.Sorted(maps.Keys(l.checkers)) {
			if l.Connected(id) && !l.silent[id] {
				l.do(l.Report(l.now, id, true))
			}
		}
		l.tick()
	}
}

func (l *lab) tick() {
	l.Helper()
	l.do(l.Tick(l.now, l.now))
	l.do(l.Dispatch(l.now))
	l.wantInStep()
}

// do carries out effects.
func (l *lab) do(e Effects) {
	l.Helper()
	l.events = append(l.events, e.Events...)
	for _, v := range e.Votes {
		for _, id := range v.Unassign {
			l.unassign(v.Checker, id)
		}
		for _, id := range v.Assign {
			if l.votes[v.Checker] == nil {
				l.votes[v.Checker] = map[health.EndpointID]bool{}
			}
			l.votes[v.Checker][id] = true
		}
	}
	for _, id := range e.Specify {
		l.specify(id)
	}
	for id, row := range e.Rows {
		if delete(l.rows, id); row != nil {
			l.rows[id] = row
		}
	}
	for id, is := range e.Established {
		if delete(l.stored, id); is != nil {
			l.stored[id] = *is
		}
	}
}

func (l *lab) specify(id string) {
	w, ok := l.Work(id)
	if !ok {
		return
	}
	for _, ended := range w.Ended {
		l.unassign(id, ended)
	}
	l.has[id] = slices.AppendSeq(slices.Concat(w.Handovers, w.Sample), w.Endpoints)
	slices.Sort(l.has[id])
	l.sent[id]++
}

func (l *lab) unassign(checker string, id health.EndpointID) {
	l.Helper()
	if !l.votes[checker][id] && l.present[id] {
		l.Errorf("%s does not check %d and is unassigned", checker, id)
	}
	if delete(l.votes[checker], id); len(l.votes[checker]) == 0 {
		delete(l.votes, checker)
	}
}

// wantInStep holds that votes are expected for just the plan, the handovers and what
// newcomers check alone.
func (l *lab) wantInStep() {
	l.Helper()
	want := map[string]map[health.EndpointID]bool{}
	expect := func(checker string, id health.EndpointID) {
		if want[checker] == nil {
			want[checker] = map[health.EndpointID]bool{}
		}
		want[checker][id] = true
	}
	for id := range l.checkers {
		for endpoint := range l.planner.Endpoints(id) {
			expect(id, endpoint)
		}
		for _, endpoint := range l.handovers.endpoints(id) {
			expect(id, endpoint)
		}
		for endpoint, alone := range l.samples[id] {
			if alone {
				expect(id, endpoint)
			}
		}
	}
	for id := range want {
		if !maps.Equal(want[id], l.votes[id]) {
			l.Errorf("votes of %s are expected on %d endpoints; it has %d", id, len(l.votes[id]), len(want[id]))
		}
	}
	if len(want) != len(l.votes) {
		l.Errorf("votes are expected of %v, who have nothing", slices.Sorted(maps.Keys(l.votes)))
	}
}

// wantCover holds how many checkers have substitutes, by how far.
func (l *lab) wantCover(want map[cover]int) {
	l.Helper()
	got := map[cover]int{}
	for _, known := range l.checkers {
		if known.cover > uncovered {
			got[known.cover]++
		}
	}
	if !maps.Equal(got, want) {
		l.Errorf("covered are %v, want %v", got, want)
	}
}

// take returns how many checkers the events of a kind named since the last call.
func (l *lab) take(kind Kind) (events, named int) {
	for _, e := range l.events {
		if e.Kind == kind {
			events++
			named += len(e.Checkers)
		}
	}
	l.events = slices.DeleteFunc(l.events, func(e Event) bool { return e.Kind == kind })
	return events, named
}

// numbered are the ids of checkers.
func numbered(from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("c%d", i))
	}
	return ids
}
