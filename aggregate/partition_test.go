package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// partition is a fleet of three checkers in zones a, b and c, which check the same
// number of endpoints in each of six zones. From some time on, only zone b reaches the
// endpoints of zone b. The others find out endpoint by endpoint, with their rounds. When
// the zone is divided, b2 checks its endpoints, too.
type partition struct {
	size, interval int // endpoints in a zone; seconds

	aggregator *aggregate.Aggregator
	checkers   []string
	learns     map[string][]int // milliseconds after the cut, by endpoint
	said       map[string][]health.Status
}

func (p *partition) locality(zone string) health.Locality {
	return health.Locality{Region: "eu", Zone: zone}
}

func (p *partition) start(begin time.Time) {
	random := rand.New(rand.NewPCG(1, 2))
	p.aggregator, p.checkers = aggregate.New(aggregate.Options{}), []string{"a", "b", "c"}
	p.learns, p.said = map[string][]int{}, map[string][]health.Status{}
	every := time.Duration(p.interval) * time.Second
	timing := aggregate.Timing{
		Interval: every, Timeout: time.Second / 2, InitialJitter: min(every, 2*time.Second), UnhealthyThreshold: 2, ReportInterval: time.Second,
	}
	zones := []string{"b", "a", "c", "d", "e", "f"}
	count := p.size * len(zones)
	for id := range count {
		e := aggregate.Endpoint{ID: health.EndpointID(id), Zone: p.locality(zones[id/p.size]), Timing: timing}
		p.aggregator.Set(e, health.Verdict{Status: health.Healthy, Since: begin})
	}
	for _, checker := range p.checkers {
		p.aggregator.Connected(begin, health.Checker{ID: checker, Locality: p.locality(checker)})
		p.said[checker] = make([]health.Status, count)
		for id := range count {
			p.aggregator.Assign(begin, health.EndpointID(id), checker)
			p.learns[checker] = append(p.learns[checker], (p.interval+random.IntN(p.interval))*1000+random.IntN(1000))
		}
	}
}

// votes returns what is new in a checker's report, so long after the cut.
func (p *partition) votes(checker string, since int) []health.Vote {
	var votes []health.Vote
	for id, before := range p.said[checker] {
		status := health.Healthy
		if id < p.size && checker[0] != 'b' && since >= p.learns[checker][id] {
			status = health.Timeout
		}
		if status != before {
			p.said[checker][id] = status
			votes = append(votes, health.Vote{Endpoint: health.EndpointID(id), Status: status})
		}
	}
	return votes
}

// seat gives the endpoints of a divided zone a second checker of their own zone.
func (p *partition) seat(now time.Time, divided []aggregate.DividedChange) {
	for range divided {
		p.aggregator.Connected(now, health.Checker{ID: "b2", Locality: p.locality("b")})
		p.checkers = append(p.checkers, "b2")
		p.said["b2"] = make([]health.Status, p.size)
		for id := range p.size {
			p.aggregator.Assign(now, health.EndpointID(id), "b2")
		}
	}
}

// run returns the changes of verdicts to down.
func (p *partition) run() (downs []aggregate.Change) {
	begin := time.Unix(0, 0)
	p.start(begin)
	cut := (3*p.interval + 20) * 1000
	for at := 0; at < cut+(5*p.interval+10)*1000; at += 100 {
		now := begin.Add(time.Duration(at) * time.Millisecond)
		effects := p.aggregator.Tick(now)
		changes := effects.Changes
		for i, checker := range p.checkers {
			p.seat(now, effects.Divided)
			if effects = (aggregate.Effects{}); at%1000 == 300*i {
				effects = p.aggregator.Report(now, checker, p.votes(checker, at-cut))
				changes = append(changes, effects.Changes...)
			}
		}
		p.seat(now, effects.Divided)
		for _, change := range changes {
			if change.To.Down() {
				downs = append(downs, change)
			}
		}
	}
	return downs
}

// TestPartitionTakesNothingDown however slow the checks are, and however few
// endpoints the zone has.
func TestPartitionTakesNothingDown(t *testing.T) {
	for _, p := range []partition{
		{size: 100, interval: 1}, {size: 100, interval: 5}, {size: 100, interval: 10}, {size: 100, interval: 60},
		{size: 4, interval: 1}, {size: 10, interval: 1}, {size: 19, interval: 5}, {size: 20, interval: 10},
	} {
		t.Run(fmt.Sprintf("%d every %d s", p.size, p.interval), func(t *testing.T) {
			t.Parallel()
			if downs := p.run(); len(downs) > 0 {
				t.Errorf("%d verdicts of down, the first: %+v", len(downs), downs[0])
			}
		})
	}
}
