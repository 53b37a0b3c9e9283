package alone

import (
	"fmt"
	"testing"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// renewed is a step in which a source renews policy.endpoint_stale_after until a condition
// holds at both data planes. Each renewal has a lease of its own, since go-control-plane sends
// no delta client what it has sent before.
func renewed(what string, holds func(*Play, map[string]envoy.Host) bool) Step {
	return func(p *Play) {
		p.t.Helper()
		renewals := 0
		envoy.Eventually(p.t, fleet.Patience, what, func() bool {
			renewals++
			Change("", assignment("$0, $1", fmt.Sprintf("policy: {endpoint_stale_after: 2.%03ds}", renewals%1000)))(p)
			return holds(p, p.hosts(Alone)) && holds(p, p.hosts(Through))
		})
	}
}

// renewedUp has both endpoints up.
var renewedUp = renewed("both endpoints to be up", func(p *Play, hosts map[string]envoy.Host) bool {
	zero, one := hosts[p.up(0).Addr()], hosts[p.up(1).Addr()]
	return len(hosts) == 2 && !zero.Failed() && !one.Failed()
})

// leases are assignments that are renewed while an endpoint fails, then are not, and come back:
// at last without a lease.
var leases = []Case{
	{
		Name: "an EDS assignment grows stale", Cluster: eds(checks(check), noPanic, "ignore_health_on_host_removal: true"), Assignment: assignment("$0, $1"), Want: Same,
		Steps: []Step{
			Ready(), renewedUp, Set(1, broken), renewed("endpoint 1 to be down", func(p *Play, hosts map[string]envoy.Host) bool {
				return hosts[p.up(1).Addr()].Failed()
			}),
			Gone(0, 1), Send(10), Set(1, upstream.Healthy()), renewedUp, Change("", assignment("$0, $1")), Ready(),
			Set(1, broken), Down(1), During(300), Send(20),
		},
	},
	{ // An Envoy's own check keeps what is removed as long as it is healthy.
		Name: "a stale EDS assignment of healthy endpoints", Cluster: eds(checks(check), noPanic), Assignment: assignment("$0, $1"), Want: Differs,
		Steps: []Step{
			Ready(), Send(20), renewedUp, Await(Through, "the endpoints to be gone", func(p *Play) bool { return len(p.hosts(Through)) == 0 }),
			Send(10), Change("", assignment("$0, $1")), Ready(), Send(20),
		},
	},
}

// TestLeases plays them from a file and through the relay, by delta and by the state of the world,
// one after the other: each change of a file renews all that is in it.
func TestLeases(t *testing.T) {
	t.Parallel()
	eachRelease(t, func(t *testing.T, version string) {
		for _, o := range []Options{{}, {Relay: true}, {WholeState: true}, {Relay: true, WholeState: true}} {
			if o.WholeState && !full() {
				continue
			}
			o.Version, o.Checkers = version, 1
			t.Run(fmt.Sprintf("relay %t whole state %t", o.Relay, o.WholeState), func(t *testing.T) {
				t.Parallel()
				NewRig(t, o).Sequence(t, leases)
			})
		}
	})
}
