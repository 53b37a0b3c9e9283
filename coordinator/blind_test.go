//go:build !race || soak

package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"hdsd/health"
)

// The two clusters of a lab in which checkers are stuck.
var stuckClusters = map[string][]string{"web": fortyOf("10.0.0.%d:80"), "pay": fortyOf("10.0.1.%d:80")}

func fortyOf(format string) (addresses []string) {
	for i := range 40 {
		addresses = append(addresses, fmt.Sprintf(format, 1+i))
	}
	return addresses
}

// stuckLab returns a lab in which two of eight checkers report every endpoint as healthy.
// In each cluster an endpoint is down that only one of the two checks, so that hdsd finds
// them blind. It also returns the endpoints of "web" that both check.
func stuckLab(t *testing.T, one, two string) (l *lab, both []string) {
	l = newLab(t)
	l.serve(web("web", stuckClusters["web"]...), web("pay", stuckClusters["pay"]...))
	l.join("c0a", "c1b", "c2c", "c3a", "c4b", "c5c", "c6a", "c7b")
	l.pass(settle + 10*time.Second)
	has := func(id, address string) bool { return slices.Contains(l.checkersOf(address), id) }
	for _, pair := range [][2]string{{one, two}, {two, one}} {
		stuck := l.checkers[pair[0]]
		stuck.blind = map[string]health.Status{}
		for name, addresses := range stuckClusters {
			alone := slices.IndexFunc(addresses, func(a string) bool { return has(pair[0], a) && !has(pair[1], a) })
			if alone < 0 {
				t.Fatalf("%s has nothing of %s without %s", pair[0], name, pair[1])
			}
			l.truth[addresses[alone]] = health.Unhealthy
			for _, address := range addresses {
				stuck.blind[address] = health.Healthy
			}
		}
	}
	both = slices.DeleteFunc(slices.Clone(stuckClusters["web"]), func(a string) bool { return !has(one, a) || !has(two, a) })
	if len(both) == 0 {
		t.Fatalf("%s and %s have nothing together", one, two)
	}
	return l, both
}

func (l *lab) wantBlind(want float64) {
	l.t.Helper()
	if got := testutil.ToFloat64(l.core.metrics.votes.blind); got != want {
		l.t.Errorf("hdsd_checkers_blind is %g, want %g", got, want)
	}
}

// TestBlindCheckersAreOutnumbered covers an endpoint with two blind checkers of three: two substitutes check
// it, and hdsd sees its outage. The plan returns when the blind checkers see an outage.
func TestBlindCheckersAreOutnumbered(t *testing.T) {
	l, both := stuckLab(t, "c0a", "c1b")
	var log strings.Builder
	l.core.eventLog.log = zerolog.New(&log)
	digest := l.digest()
	l.truth[both[0]] = health.Unhealthy
	l.pass(30 * time.Second)
	l.wantBlind(2)
	for name, addresses := range stuckClusters {
		for _, address := range addresses {
			who := l.checkersOf(address)
			want := 3
			if slices.Contains(who, "c0a") && slices.Contains(who, "c1b") {
				want = 5
			}
			if len(who) != want {
				t.Errorf("%s %s is checked by %v, want %d", name, address, who, want)
			}
		}
	}
	l.wantPublished("web", both[0], health.Unhealthy)

	clear(l.truth)
	l.reconnectAll()
	l.pass(10 * time.Second)
	l.wantBlind(2)
	l.truth[both[0]] = health.Unhealthy
	l.pass(70 * time.Second) // longer than any handover
	l.wantBlind(0)
	if l.digest() != digest {
		t.Error("the plan is not what it was")
	}
	for event, want := range map[string]int{"checker_blind": 2, "checker_sees": 2, "checker_doubted": 0} {
		if got := strings.Count(log.String(), `"event":"`+event+`"`); got != want {
			t.Errorf("%s was told %d times, want %d", event, got, want)
		}
	}
	if !strings.Contains(log.String(), `"event":"blind_outnumbered"`) {
		t.Error("nothing was told of substitutes")
	}
}

// TestDistrustedBlindChecker covers a distrusted blind checker: substitutes replace it everywhere, and
// outnumber it again afterwards.
func TestDistrustedBlindChecker(t *testing.T) {
	l, both := stuckLab(t, "c0a", "c1b")
	all := slices.Concat(stuckClusters["web"], stuckClusters["pay"])
	l.pass(30 * time.Second)
	company := l.extraCheckers(3, all)
	l.distrust("c0a")
	l.pass(10 * time.Second)
	for _, address := range all {
		who := l.checkersOf(address)
		if believed := slices.DeleteFunc(slices.Clone(who), l.isDoubted); slices.Contains(who, "c0a") && len(believed) < 3 {
			t.Errorf("%s is checked by %v while c0a is distrusted", address, who)
		}
	}
	l.clearTrustOf("c0a")
	l.pass(70 * time.Second)
	if got := l.extraCheckers(3, all); got != company || got < 2*len(both) {
		t.Errorf("%d checkers more than planned after that, %d before", got, company)
	}
}

// TestBlindCheckersAreShown covers the reason in queries, where blind checkers stay believed.
func TestBlindCheckersAreShown(t *testing.T) {
	l, _ := stuckLab(t, "c0a", "c1b")
	l.pass(30 * time.Second)
	shown, err := l.backend().Checkers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range shown {
		want := k.ID == "c0a" || k.ID == "c1b"
		if (k.BlindReason != "") != want || !k.Trusted {
			t.Errorf("%s is blind since %q, trusted %v", k.ID, k.BlindReason, k.Trusted)
		}
	}
}
