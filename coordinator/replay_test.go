//go:build !race || soak

package coordinator

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/api"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/machine/recording"
	"hdsd/publish"
	"hdsd/source"
	"hdsd/store"
)

// effectLog records the effects of a core.
type effectLog struct {
	*lab    // does the same
	effects []string
	made    func(*specifier.Specifier) // called with each specifier; nil: nobody asks
}

// newLogbook returns the logbook of a core. Some have probation, damping and health by zone.
func newLogbook(t testing.TB, seed uint64) *effectLog {
	l := newLab(t)
	if seed%2 == 1 {
		l.rules.Checkers.Probation = durationpb.New(20 * time.Second)
		l.rules.Verdict = &configv1.Verdict{Damping: &configv1.Damping{}}
	}
	l.timing.ZoneViews = seed%3 == 2
	p := &effectLog{lab: l}
	l.onStart = func(c *core, _ *log.State) {
		p.effects = nil
		c.hds, c.history, c.publisher.planes, c.recorder.history = p, p, p, p
	}
	return p
}

// record begins a recording of each new core. It returns the latest recording.
func (p *effectLog) record() *bytes.Buffer {
	file, begun := &bytes.Buffer{}, p.onStart
	p.onStart = func(c *core, state *log.State) {
		begun(c, state)
		file.Reset()
		var writer *recording.Writer
		hand := func(piece recording.Piece) bool {
			_, err := writer.Write(piece)
			return err == nil
		}
		var err error
		header := &recording.Header{Version: "1.2.3", Node: "hdsd-1", Start: p.now, Timing: p.timing}
		if c.recording, writer, err = recording.New(file, header, state, hand); err != nil {
			p.t.Fatal(err)
		}
	}
	return file
}

// replay replays a recording with a new core.
func (p *effectLog) replay(file []byte) {
	r, err := recording.NewReader(bytes.NewReader(file), time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	begun := p.onStart
	p.onStart = func(c *core, state *log.State) {
		begun(c, state)
		*state = *r.State
	}
	p.start(nil)
	made := map[uint64]*specifier.Specifier{}
	p.made = func(s *specifier.Specifier) { made[s.Serial] = s }
	r.FindSpecifier = func(_ string, serial uint64) *specifier.Specifier { return made[serial] }
	for {
		e, err := r.Next()
		if err != nil || len(e.Differing) > 0 {
			p.t.Fatal(err, e.Differing)
		}
		if e.Event == nil {
			return
		}
		if k, ok := e.Event.(machine.Connected); ok {
			p.checkers[k.Checker.ID] = &fakeChecker{Checker: k.Checker, reported: map[health.EndpointID]health.Status{}}
		}
		p.now = e.Time
		p.step(e.Event)
	}
}

func (p *effectLog) add(format string, args ...any) {
	p.effects = append(p.effects, fmt.Sprintf(format, args...))
}

// noteAll adds changes by key. A nil value is a removal.
func noteAll[K comparable, V any](p *effectLog, name string, changed map[K]*V) {
	var all []string
	for k, v := range changed {
		if v == nil {
			all = append(all, fmt.Sprintf("%v removed", k))
		} else {
			all = append(all, fmt.Sprintf("%v: %+v", k, *v))
		}
	}
	p.add("%s %v", name, slices.Sorted(slices.Values(all)))
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (p *effectLog) Assign(id string, s *specifier.Specifier) {
	if p.made != nil {
		p.made(s)
	}
	p.add("specifier %d for %s: %v %v %v %x", s.Serial, id, s.Retell, s.Order, s.Addresses, encoded(p.t, s.Message()))
	p.lab.Assign(id, s)
}

func (p *effectLog) Update(u publish.Update) {
	for i := range u.Assignments {
		p.add("assignment %s: %v %x", u.Assignments[i].Name, u.Assignments[i].IDs, encoded(p.t, u.Assignments[i].Message()))
	}
	for _, c := range u.Clusters {
		p.add("cluster %s: %x", c.Name, encoded(p.t, c.Message))
	}
	p.add("removed: %v %v", u.RemovedAssignments, u.RemovedClusters)
	p.lab.Update(u)
}

func (p *effectLog) SetHealth(all []publish.Health) {
	p.add("health: %+v", all)
	p.lab.SetHealth(all)
}

func (p *effectLog) SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	p.add("health in %v: %+v, %v", zone, set, unset)
	p.lab.SetZoneHealth(zone, set, unset)
}

func (p *effectLog) AppendEvents(all []store.Event) {
	p.add("events: %+v", all)
	p.lab.AppendEvents(all)
}

// Apply notes no shapes of trials, and no names that follow from them: recordings hide these.
func (p *effectLog) Apply(e *log.Entry) {
	if f := e.Freeze; f != nil {
		noteAll(p, "freeze by "+f.By, map[string]*log.Freeze{"before": f.Before, "after": f.After})
	}
	noteAll(p, "held", map[string]*log.Freeze{"": e.Held})
	if t := e.Trust; t != nil {
		noteAll(p, "trust in "+t.Checker+" by "+t.By, map[string]*log.Trust{"before": t.Before, "after": t.After})
	}
	noteAll(p, "voted", e.Voted)
	noteAll(p, "established", e.Established)
	noteAll(p, "penalties", e.Penalties)
	p.add("overrides %+v, transitions %+v, unvoted %v", e.Overrides, e.Transitions, e.Unvoted)
	p.add("clusters %q, taken over %q, given back %q, removed %q, plan %v", e.Clusters, e.TakenOver, e.GivenBack, e.Removed, e.Plan)
	var trials []string
	for _, t := range e.Trials {
		if t == nil {
			t = &log.Trials{}
		}
		text := fmt.Sprintf("%d blamed, %+v, %d retries", len(t.Blamed), t.Losses, t.Retries)
		for _, proof := range t.Proven {
			text += fmt.Sprintf(", %x", proof.Build)
		}
		trials = append(trials, text)
	}
	p.add("trials %q", slices.Sorted(slices.Values(trials)))
	p.lab.Apply(e)
}

// TestReplayIsExact covers that the events of a recording lead another core to the same effects in the same
// order. Some runs begin with the state of an earlier run.
func TestReplayIsExact(t *testing.T) {
	for seed := range uint64(60) {
		first, second, random := newLogbook(t, seed), newLogbook(t, seed), rand.New(rand.NewPCG(seed, 0))
		if seed%4 == 3 {
			first.runRandom(random)
		}
		file := first.record()
		first.restart()
		first.runRandom(random)
		first.core.recording.Flush()
		second.replay(file.Bytes())
		if len(first.transitions) == 0 || len(first.sent) == 0 {
			t.Fatalf("seed %d: nothing happened", seed)
		}
		for i := range min(len(first.effects), len(second.effects)) {
			if first.effects[i] != second.effects[i] {
				before := max(0, i-3)
				t.Fatalf("seed %d: effect %d differs after %v: %s", seed, i, first.effects[before:i], gocmp.Diff(first.effects[i], second.effects[i]))
			}
		}
		if len(first.effects) != len(second.effects) {
			t.Fatalf("seed %d: %d effects, and %d", seed, len(first.effects), len(second.effects))
		}
		r, err := recording.NewReader(bytes.NewReader(file.Bytes()), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		result, err := recording.Replay(r, func(*recording.Entry, machine.Effect) error { return nil })
		if err != nil || result.Difference != "" || result.Decisions == 0 {
			t.Fatalf("seed %d: %+v, %v", seed, result, err)
		}
		if testing.Verbose() {
			t.Logf("seed %d: %d events, %d decisions in %d bytes", seed, result.Events, result.Decisions, file.Len())
		}
	}
}

// runRandom does random things for some minutes.
func (l *lab) runRandom(random *rand.Rand) {
	ids := []string{"c0a", "c1a", "c2b", "c3b", "c4c", "c5c", "c6a"}
	addresses := make([]string, 12)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.0.%d:80", i+1)
	}
	draw := func() (all []*source.Cluster) {
		for _, name := range []string{"pay", "shop", "web"} {
			if random.IntN(4) > 0 {
				first := random.IntN(6)
				k := withPath(name, fmt.Sprintf("/%d", random.IntN(2)), addresses[first:first+1+random.IntN(6)]...)
				if l.vary != nil {
					l.vary(k)
				}
				all = append(all, k)
			}
		}
		return all
	}
	l.serve(draw()...)
	for _, id := range ids[:4] {
		l.join(id)
	}
	l.pass(settle + 10*report)
	for range 80 {
		id, address := ids[random.IntN(len(ids))], addresses[random.IntN(len(addresses))]
		scope := keyOf([]string{"pay", "shop", "web"}[random.IntN(3)], address)
		switch random.IntN(14) {
		case 0:
			l.setClusters(draw()...)
		case 1, 2:
			if l.checkers[id] == nil {
				l.join(id)
			} else {
				l.lose(id)
			}
		case 3, 4, 5, 6:
			l.truth[address] = []health.Status{up, down, health.Timeout}[random.IntN(3)]
		case 7:
			if k := l.checkers[id]; k != nil {
				k.blind = map[string]health.Status{address: down}
			}
		case 8:
			_, _ = l.override(log.Override{Scope: scope, Status: drained, Reason: "x", Author: "ann", Until: l.now.Add(20 * report)})
		case 9:
			_, _ = l.clear(health.Endpoint{Cluster: scope.Cluster}, true)
		case 10:
			l.freeze(api.Freeze{Reason: "x", Author: "ann", Hold: random.IntN(2) == 0})
		case 11:
			l.unfreeze("ann")
		case 12:
			l.setTrust(id, &log.Trust{Level: []log.TrustLevel{log.Trusted, log.Distrusted}[random.IntN(2)], Reason: "x", Author: "ann"})
		case 13:
			l.setSilent(random.IntN(2) == 0, slices.Sorted(maps.Keys(l.checkers))[:min(1, len(l.checkers))]...)
		}
		l.pass(time.Duration(1+random.IntN(4)) * report)
		if l.afterEach != nil {
			l.afterEach()
		}
	}
	l.pass(grace + 20*report)
}
