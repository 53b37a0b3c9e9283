//go:build !race || soak

package coordinator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"hdsd/catalog"
	"hdsd/health"
	"hdsd/log"
	"hdsd/log/batch"
	"hdsd/machine"
	"hdsd/publish"
	"hdsd/ruling"
	"hdsd/source"
)

// watchedPlanes notes the health that data planes get of each endpoint over time.
type watchedPlanes struct {
	*lab
	rulings *ruling.Table
	courses map[health.Endpoint][]health.Status
}

func watch(l *lab, rulings *ruling.Table) *watchedPlanes {
	return &watchedPlanes{l, rulings, map[health.Endpoint][]health.Status{}}
}

// SetHealth implements resourceServer.
func (p *watchedPlanes) SetHealth(all []publish.Health) {
	p.lab.SetHealth(all)
	for _, h := range all {
		k, index := p.rulings.At(h.ID)
		if k == nil || index == catalog.None {
			continue
		}
		key := k.Checked.Key(index)
		if course := p.courses[key]; len(course) == 0 || course[len(course)-1] != h.Status {
			p.courses[key] = append(course, h.Status)
		}
	}
}

// begin forgets all but the latest health of present endpoints.
func (p *watchedPlanes) begin() {
	for key, course := range p.courses {
		if p.courses[key] = course[len(course)-1:]; !p.checks(key) {
			delete(p.courses, key)
		}
	}
}

func (p *watchedPlanes) checks(key health.Endpoint) bool {
	id, ok := p.rulings.Find(key.Hash())
	if !ok {
		return false
	}
	_, index := p.rulings.At(id)
	return index != catalog.None
}

// leaderLab is a lab with a follower of its core, which gets the entries of the log as bytes.
type leaderLab struct {
	*lab
	planes   *watchedPlanes            // what the core publishes
	state    log.State                 // that the entries come to
	latest   *catalog.Delivery         // nil: none yet
	present  map[string]catalog.Change // clusters of all deliveries
	follower *machine.Follower
	followed *watchedPlanes     // what the follower publishes
	lags     bool               // the follower gets deliveries by catchUp only
	pending  []catalog.Delivery // that it has yet to get
}

func newLeaderLab(t testing.TB, seed uint64) *leaderLab {
	l := &leaderLab{lab: newLab(t), present: map[string]catalog.Change{}, state: log.State{TakenOver: map[string]bool{}}}
	l.timing.ZoneViews = false
	if seed%3 == 1 {
		l.rules.Verdict.InitialHealth = 2
	}
	l.onStart = func(c *core, _ *log.State) {
		c.history, c.recorder.history = l, l
		l.planes = watch(l.lab, c.Rulings)
		c.publisher.planes = l.planes
	}
	l.restart()
	deliver := l.deliver
	l.deliver = func(d catalog.Delivery) {
		for _, name := range d.Removed {
			delete(l.present, name)
		}
		for _, change := range d.Changed {
			l.present[change.Cluster.Source.Name] = change
		}
		l.latest = &d
		if l.pending = append(l.pending, d); !l.lags {
			l.catchUp()
		}
		deliver(d)
	}
	return l
}

// catchUp delivers what the follower has yet to get.
func (l *leaderLab) catchUp() {
	for i := range l.pending {
		if l.follower != nil {
			l.follower.Deliver(l.now, &l.pending[i], l.publishEffect)
		}
	}
	l.pending = nil
}

// startFollower starts a follower with the state that the entries come to.
func (l *leaderLab) startFollower() {
	l.follower = machine.NewFollower(l.state.Clone())
	planes := &lab{
		t: l.t, health: map[health.EndpointID]health.Status{}, assignments: map[string]publish.Assignment{},
		clusters: map[string]*clusterv3.Cluster{}, zoneHealth: map[health.Locality]map[health.EndpointID]health.Status{},
	}
	l.followed = watch(planes, l.follower.Rulings)
	l.planes.begin()
	if l.latest != nil {
		d := catalog.Delivery{Rules: l.latest.Rules, Answered: l.latest.Answered, Complete: l.latest.Complete}
		for _, name := range slices.Sorted(maps.Keys(l.present)) {
			d.Changed = append(d.Changed, l.present[name])
		}
		l.follower.Deliver(l.now, &d, l.publishEffect)
	}
}

// publishEffect publishes an effect to the data planes of the follower.
func (l *leaderLab) publishEffect(e machine.Effect) {
	if e, ok := e.(machine.Published); ok {
		l.publish([]publish.Change{*e.Change})
	}
}

// publish publishes changes to the data planes of the follower.
func (l *leaderLab) publish(changes []publish.Change) {
	p := publisher{planes: l.followed}
	for i := range changes {
		p.publish(&changes[i])
	}
}

// Apply implements historyStore.
func (l *leaderLab) Apply(e *log.Entry) {
	l.lab.Apply(e)
	l.state.Apply(e)
	if l.follower == nil {
		return
	}
	encoded, err := batch.Encode([]*log.Entry{e})
	if err != nil {
		l.t.Fatal(err)
	}
	entries, err := batch.Decode(encoded)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		l.publish(l.follower.Follow(l.now, e))
	}
}

// rendered returns what data planes have, without ids.
func rendered(l *lab) map[string]string {
	all := map[string]string{}
	for name, a := range l.assignments {
		text := fmt.Sprintf("%v %x", a.Overruled, a.Wire)
		for _, locality := range a.IDs {
			for _, ids := range locality {
				text += " "
				for _, id := range ids {
					text += l.health[id].String()
				}
			}
		}
		all["assignment "+name] = text
	}
	for name, k := range l.clusters {
		all["cluster "+name] = fmt.Sprintf("%x", encoded(l.t, k))
	}
	return all
}

// TestAFollowerPublishesTheSame covers that a follower with the same clusters publishes what the core that
// decides does, in the same order for each endpoint, also after a restart.
func TestAFollowerPublishesTheSame(t *testing.T) {
	for seed := range uint64(60) {
		l := newLeaderLab(t, seed)
		random := rand.New(rand.NewPCG(seed, 0))
		check := func(when string) {
			if diff := gocmp.Diff(rendered(l.lab), rendered(l.followed.lab)) + gocmp.Diff(l.planes.courses, l.followed.courses); diff != "" {
				t.Fatalf("seed %d: %s: %s", seed, when, diff)
			}
		}
		l.startFollower()
		l.afterEach = func() {
			check("running")
			if random.IntN(8) == 0 {
				l.startFollower()
				check("restarted")
			}
		}
		l.runRandom(random)
		check("at the end")
		for hash, held := range l.follower.State.Current {
			if _, present := l.follower.Rulings.Find(hash); !present && !l.follower.Rulings.Remembers(hash) {
				t.Fatalf("seed %d: the state has %+v, which is gone", seed, held)
			}
		}
		if len(l.transitions) == 0 {
			t.Fatalf("seed %d: nothing happened", seed)
		}
	}
}

// TestAFollowerWithSlowSourcesPublishesTheSame covers that a follower gets the clusters later than the
// entries about them. Once it has all, it publishes what the core that decides does.
func TestAFollowerWithSlowSourcesPublishesTheSame(t *testing.T) {
	for seed := range uint64(40) {
		l := newLeaderLab(t, seed)
		random := rand.New(rand.NewPCG(seed, 1))
		l.vary = func(k *source.Cluster) {
			switch random.IntN(6) {
			case 0, 1:
				k.Config.HealthChecks = nil
			case 2:
				k.Assignment, k.Rejected = nil, "a mistake"
			}
		}
		l.startFollower()
		l.lags = true
		l.afterEach = func() {
			if random.IntN(3) > 0 {
				return
			}
			l.catchUp()
			if diff := gocmp.Diff(rendered(l.lab), rendered(l.followed.lab)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
			if random.IntN(8) == 0 {
				l.startFollower()
			}
		}
		l.runRandom(random)
	}
}
