package aggregate_test

import (
	"testing"
	"time"

	"hdsd/aggregate"
	"hdsd/health"
)

// TestOneOutageLooksIntact: where hardly anything else is contradicted, the majority
// from elsewhere only waits for the next report of the checker in the endpoint's own
// zone, whether it comes or is lost. Where more is, it waits for longer.
func TestOneOutageLooksIntact(t *testing.T) {
	const short, long = time.Second, 2500 * time.Millisecond
	for _, test := range []struct {
		name              string
		size, contradicts int           // endpoints of the zone, and those that one checker elsewhere sees down, too
		want              time.Duration // from the majority to the verdict
	}{
		{"one of many", 250, 0, short},
		{"some of very many", 1250, 4, short},
		{"one of too few to tell", 249, 0, long},
		{"another one of many", 250, 1, long},
		{"more of very many", 1250, 5, long},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			a := aggregate.New(aggregate.Options{})
			zone := func(name string) health.Locality { return health.Locality{Region: "eu", Zone: name} }
			up := make([]health.Vote, test.size)
			for i := range up {
				up[i] = health.Vote{Endpoint: health.EndpointID(i), Status: health.Healthy}
				a.Set(aggregate.Endpoint{ID: up[i].Endpoint, Zone: zone("b"), Timing: usual}, health.Verdict{Status: health.Healthy, Since: now})
			}
			for _, checker := range []string{"a", "b", "c"} {
				a.Connected(now, health.Checker{ID: checker, Locality: zone(checker)})
				for _, v := range up {
					a.Assign(now, v.Endpoint, checker)
				}
				a.Report(now, checker, up)
			}
			now = now.Add(time.Second / 2)
			var downs []health.Vote
			for i := range 1 + test.contradicts {
				downs = append(downs, health.Vote{Endpoint: health.EndpointID(i), Status: health.Timeout})
			}
			if changes := a.Report(now, "a", downs).Changes; len(changes) > 0 {
				t.Fatalf("one vote of three decides: %+v", changes)
			}
			changes, waited := a.Report(now, "c", downs[:1]).Changes, time.Duration(0)
			for len(changes) == 0 && waited < time.Minute {
				waited += time.Second / 2
				for _, checker := range []string{"a", "c"} { // b is not heard
					changes = append(changes, a.Report(now.Add(waited), checker, nil).Changes...)
				}
			}
			if waited != test.want || changes[0].To != health.Timeout {
				t.Errorf("after %s: %+v; want it after %s", waited, changes, test.want)
			}
		})
	}
}
