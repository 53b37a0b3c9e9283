package machine_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/ruling"
	"hdsd/source/sample"
)

// TestAFollowerTakesNothingOverItself covers a log that begins without clusters that are taken over. The
// machine that decides may wait for a checker, of which the follower knows nothing.
func TestAFollowerTakesNothingOverItself(t *testing.T) {
	rules := catalog.NewRules(&configv1.Config{})
	web := catalog.Prepare(sample.Web("web", "10.0.0.1:80"), rules)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := machine.NewFollower(log.State{})
	f.Follow(now, &log.Entry{Transitions: []health.Transition{{Time: now, Endpoint: web.Checked.Key(0), To: health.Healthy, Reason: "3 of 3 checkers say HEALTHY"}}})
	f.Deliver(now, &catalog.Delivery{Rules: rules, Changed: []catalog.Change{{Cluster: web}}, Complete: true}, func(machine.Effect) {})
	if f.Rulings.Takeover("web").Done {
		t.Error("it is taken over without an entry")
	}
	f.Follow(now, &log.Entry{TakenOver: []string{"web"}})
	if !f.Rulings.Takeover("web").Done {
		t.Error("it is not taken over")
	}
}

// TestFollowersAnswerOrders covers the results of orders that another machine carries out: those that one machine sets
// are those of a follower of its entries.
func TestFollowersAnswerOrders(t *testing.T) {
	rules := catalog.NewRules(&configv1.Config{})
	web := catalog.Prepare(sample.Web("web", "10.0.0.1:80", "10.0.0.2:80"), rules)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m, f := machine.New(machine.Timing{Report: time.Second}), machine.NewFollower(log.State{})
	delivery := catalog.Delivery{Rules: rules, Changed: []catalog.Change{{Cluster: web}}, Complete: true}
	m.Step(now, machine.Delivered{Delivery: delivery}, func(machine.Effect) {})
	f.Deliver(now, &delivery, func(machine.Effect) {})

	override := func(address string, status health.Status) log.Override {
		return log.Override{Scope: health.Endpoint{Cluster: "web", Address: address}, Status: status, Reason: "a test", Author: "ann"}
	}
	set := func(o log.Override) (leader, follower machine.Event) {
		return &machine.SetOverride{Override: o}, &machine.SetOverride{Override: o}
	}
	for _, order := range []func() (leader, follower machine.Event){
		func() (leader, follower machine.Event) { return set(override("", health.Draining)) },
		func() (leader, follower machine.Event) { return set(override("10.0.0.1:80", health.Healthy)) },
		func() (leader, follower machine.Event) { return set(override("10.0.0.1:80", health.Unhealthy)) },
		func() (leader, follower machine.Event) { return set(override("10.0.0.1:80", health.Unhealthy)) },
		func() (leader, follower machine.Event) {
			order := machine.ClearOverrides{Scope: health.Endpoint{Cluster: "web"}, All: true, Author: "bob"}
			second := order
			return &order, &second
		},
		func() (leader, follower machine.Event) {
			return &machine.Freeze{Author: "ann", Reason: "a test"}, &machine.Freeze{Author: "ann", Reason: "a test"}
		},
		func() (leader, follower machine.Event) {
			return &machine.Freeze{Author: "bob", Reason: "another"}, &machine.Freeze{Author: "bob", Reason: "another"}
		},
		func() (leader, follower machine.Event) {
			return &machine.Unfreeze{Author: "bob"}, &machine.Unfreeze{Author: "bob"}
		},
		func() (leader, follower machine.Event) {
			return &machine.Unfreeze{Author: "bob"}, &machine.Unfreeze{Author: "bob"}
		},
		func() (leader, follower machine.Event) {
			trust := log.Trust{Level: log.Distrusted, Reason: "a test", Author: "ann"}
			return &machine.SetTrust{Checker: "c1", Trust: trust}, &machine.SetTrust{Checker: "c1", Trust: trust}
		},
		func() (leader, follower machine.Event) {
			return &machine.ClearTrust{Checker: "c1", Author: "bob"}, &machine.ClearTrust{Checker: "c1", Author: "bob"}
		},
	} {
		now = now.Add(time.Minute)
		leader, follower := order()
		var entries []*log.Entry
		m.Step(now, leader, func(e machine.Effect) {
			if e, ok := e.(machine.Logged); ok {
				entries = append(entries, e.Entry)
			}
		})
		if len(entries) == 0 {
			entries = []*log.Entry{{}} // as a leader logs an order that changes nothing
		}
		for i, e := range entries {
			if i == 0 {
				f.FollowOrder(now, e, follower)
			} else {
				f.Follow(now, e)
			}
		}
		if diff := gocmp.Diff(leader, follower, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b ruling.Override) bool { return a.Scope.Compare(b.Scope) < 0 })); diff != "" {
			t.Errorf("%T: leader (-), follower (+):\n%s", leader, diff)
		}
	}
}

// TestAnEntryDoesNotFitItsOrder covers what no leader writes.
func TestAnEntryDoesNotFitItsOrder(t *testing.T) {
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	entries := []*log.Entry{{}, {Trust: &log.TrustChange{Checker: "c1"}}, {Freeze: &log.FreezeChange{}}, {Overrides: []log.OverrideChange{{Kind: log.Expired}}}}
	for _, e := range entries {
		for _, order := range []machine.Event{
			&machine.SetOverride{}, &machine.ClearOverrides{}, &machine.Freeze{}, &machine.Unfreeze{}, &machine.SetTrust{}, &machine.ClearTrust{}, &machine.Annotate{},
		} {
			machine.NewFollower(log.State{}).FollowOrder(now, e, order)
		}
	}
}
