package machine_test

import (
	"testing"
	"time"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	"hdsd/machine"
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
