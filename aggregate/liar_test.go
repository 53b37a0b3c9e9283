package aggregate_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// witnesses is a fleet of three zones, a, b and c, with two honest checkers each. 200
// endpoints are in zone a. Each has a checker in each zone; where the liar has a seat,
// that is the one in zone a. Checks and reports take a second.
type witnesses struct {
	share float64 // of the endpoints at which the liar has the seat
	alone bool    // zone a has no honest checker

	// The liar's vote, so many milliseconds after the start.
	lie func(at int, id health.EndpointID) health.Status
	// truth says whether an honest checker's probe gets an answer.
	truth func(at int, zone string, id health.EndpointID) bool
	// seat gives the endpoints of a divided zone a second checker there.
	seat bool

	aggregator *aggregate.Aggregator
	reports    []*witness
	down       map[health.EndpointID]int // since when the verdict is down, in milliseconds
	ups        int                       // verdicts that came back up
	divided    []aggregate.DividedChange
}

const witnessed = 200 // endpoints

type witness struct {
	name, zone string
	late       map[health.EndpointID]int // how much later it sees a change, in milliseconds
	said       map[health.EndpointID]health.Status
}

func (w *witnesses) locality(zone string) health.Locality {
	return health.Locality{Region: "eu", Zone: zone}
}

func (w *witnesses) start(seed uint64) {
	w.aggregator, w.down = aggregate.New(aggregate.Options{}), map[health.EndpointID]int{}
	random := rand.New(rand.NewPCG(seed, 3))
	for id := range health.EndpointID(witnessed) {
		w.aggregator.Set(aggregate.Endpoint{ID: id, Zone: w.locality("a"), Timing: usual}, health.Verdict{Status: health.Healthy, Since: epoch})
	}
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2", "liar"} {
		zone := name[:1]
		if name == "liar" {
			zone = "a"
		} else if w.alone && zone == "a" {
			continue
		}
		w.reports = append(w.reports, &witness{name, zone, map[health.EndpointID]int{}, map[health.EndpointID]health.Status{}})
		w.aggregator.Connected(epoch, health.Checker{ID: name, Locality: w.locality(zone)})
	}
	for id := range health.EndpointID(witnessed) {
		own := []string{"a1", "a2"}[id%2]
		if w.alone || float64(id) < w.share*witnessed {
			own = "liar"
		}
		for _, name := range []string{own, []string{"b1", "b2"}[random.IntN(2)], []string{"c1", "c2"}[random.IntN(2)]} {
			w.assign(0, id, name, 1000+random.IntN(1000))
		}
	}
}

func (w *witnesses) assign(at int, id health.EndpointID, name string, late int) {
	w.aggregator.Assign(epoch.Add(time.Duration(at)*time.Millisecond), id, name)
	i := slices.IndexFunc(w.reports, func(x *witness) bool { return x.name == name })
	w.reports[i].late[id] = late
}

// run plays until a moment, in milliseconds.
func (w *witnesses) run(until int) {
	for at := 0; at <= until; at += 100 {
		now := epoch.Add(time.Duration(at) * time.Millisecond)
		w.apply(at, w.aggregator.Tick(now))
		for i, x := range w.reports {
			if at%1000 == 100*i+100 {
				w.apply(at, w.aggregator.Report(now, x.name, w.votes(at, x)))
			}
		}
	}
}

func (w *witnesses) votes(at int, x *witness) (votes []health.Vote) {
	for id := range health.EndpointID(witnessed) {
		late, seated := x.late[id]
		if !seated {
			continue
		}
		status := health.Timeout
		switch {
		case x.name == "liar":
			status = w.lie(at, id)
		case w.truth(at-late, x.zone, id):
			status = health.Healthy
		}
		if before, voted := x.said[id]; !voted || before != status {
			x.said[id] = status
			votes = append(votes, health.Vote{Endpoint: id, Status: status})
		}
	}
	return votes
}

func (w *witnesses) apply(at int, effects aggregate.Effects) {
	for _, c := range effects.Changes {
		if _, was := w.down[c.Endpoint]; c.To.Down() {
			w.down[c.Endpoint] = at
		} else if was {
			delete(w.down, c.Endpoint)
			w.ups++
		}
	}
	w.divided = append(w.divided, effects.Divided...)
	if !w.seat {
		return
	}
	for _, d := range effects.Divided {
		for id := range health.EndpointID(witnessed) {
			second := []string{"a2", "a1"}[id%2]
			if !d.Over && float64(id) < w.share*witnessed {
				w.assign(at, id, second, 0)
			} else if float64(id) < w.share*witnessed {
				w.aggregator.Unassign(epoch.Add(time.Duration(at)*time.Millisecond), id, second)
			}
		}
	}
}

// latest returns when the last endpoint went down.
func (w *witnesses) latest() int {
	last := 0
	for _, at := range w.down {
		last = max(last, at)
	}
	return last
}

func up(int, health.EndpointID) health.Status { return health.Healthy }

const failure = 20_000 // when the trouble begins, in milliseconds

// longestHold is for how long a checker may hold an outage that others see: 10 rounds
// from when they say so, which takes at most 3.
const longestHold = failure + 13_000

func failing(at int, _ string, _ health.EndpointID) bool { return at < failure }

// TestALiarHidesNoOutage: all endpoints of a zone stop answering, and one checker in the
// zone goes on saying up.
func TestALiarHidesNoOutage(t *testing.T) {
	for name, w := range map[string]*witnesses{
		"half of the seats": {share: 0.55},
		"all seats":         {share: 1},
		"few seats":         {share: 0.1},
		"alone in the zone": {alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.lie, w.truth = up, failing
			w.start(1)
			w.run(longestHold + 60_000)
			if len(w.down) != witnessed || w.latest() > longestHold || w.ups > 0 {
				t.Errorf("%d of %d are down, the last since %d ms after the outage; %d came back", len(w.down), witnessed, w.latest()-failure, w.ups)
			}
		})
	}
}

// TestALiarBringsNothingBack: one checker says up of all that has been down for long.
func TestALiarBringsNothingBack(t *testing.T) {
	for name, w := range map[string]*witnesses{
		"all seats":         {share: 1},
		"alone in the zone": {alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.truth = failing
			w.lie = func(at int, _ health.EndpointID) health.Status {
				if at > failure && at < 2*failure || at > 2*failure && at/5000%2 == 0 {
					return health.Timeout
				}
				return health.Healthy
			}
			w.start(1)
			w.run(5 * failure)
			if len(w.down) != witnessed || w.ups > 0 {
				t.Errorf("%d of %d are down; %d came back", len(w.down), witnessed, w.ups)
			}
		})
	}
}

// TestALoneWitnessOfACut: the way to a zone is cut, and one checker alone says so. It may
// be a liar, so the verdicts hold for 10 rounds, unless others in the zone join it.
func TestALoneWitnessOfACut(t *testing.T) {
	cut := func(at int, zone string, _ health.EndpointID) bool { return at < failure || zone == "a" }
	for name, test := range map[string]struct {
		witnesses
		protected int // seconds without a verdict of down
	}{
		"alone in the zone":              {witnesses{alone: true}, 8},
		"with all seats":                 {witnesses{share: 1}, 8},
		"with all seats, then a second":  {witnesses{share: 1, seat: true}, 120},
		"with most seats":                {witnesses{share: 0.9}, 120},
		"with most seats, then a second": {witnesses{share: 0.9, seat: true}, 120},
	} {
		t.Run(name, func(t *testing.T) {
			w := &test.witnesses
			w.lie, w.truth = up, cut
			w.start(1)
			w.run(failure + 1000*test.protected)
			if len(w.down) > 0 || w.ups > 0 {
				t.Errorf("%d are down, %d came back", len(w.down), w.ups)
			}
		})
	}
}

// TestALiarBehindACut: the way to a zone is cut, and then an endpoint of it fails where a
// liar says up. Once the zone is divided, a second checker there sees it.
func TestALiarBehindACut(t *testing.T) {
	failed := func(id health.EndpointID) bool { return id%10 == 0 }
	w := &witnesses{share: 0.5, seat: true, lie: up}
	w.truth = func(at int, zone string, id health.EndpointID) bool {
		return at < failure || zone == "a" && (at < 2*failure || !failed(id))
	}
	w.start(1)
	w.run(4 * failure)
	for id := range health.EndpointID(witnessed) {
		if _, down := w.down[id]; down != failed(id) {
			t.Errorf("endpoint %d: down %v, want %v", id, down, failed(id))
		}
	}
	if len(w.divided) != 1 || w.divided[0] != (aggregate.DividedChange{Zone: w.locality("a")}) {
		t.Errorf("divided: %+v", w.divided)
	}
}
