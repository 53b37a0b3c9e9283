package fleet

import (
	"fmt"
	"testing"

	"hdsd/health"
)

// come connects checkers of one identity in one zone, with the weight that they claim.
func (l *lab) come(identity, zone string, claim float64, ids ...string) {
	for _, id := range ids {
		l.do(l.Connect(l.now, health.Checker{ID: id, Identity: identity, Weight: claim, Locality: health.Locality{Region: "r", Zone: zone}}))
	}
}

// wantAtMost holds that checkers have no more endpoints together than 1.12 times a share.
func (l *lab) wantAtMost(share float64, ids ...string) {
	l.Helper()
	sum := 0
	for _, id := range ids {
		sum += l.Part(id).Endpoints
	}
	if most := share*1.12 + 1; float64(sum) > most {
		l.Errorf("%v have %d endpoints, more than %.0f", ids, sum, most)
	}
}

// honest returns a lab of two checkers in each of three zones, each with an identity of
// its own, and 600 endpoints that two checkers each have to check.
func honest(t *testing.T) *lab {
	l := newLab(t, options(), 0, 600)
	l.claimsCount()
	for i := range 6 {
		l.come(fmt.Sprintf("spiffe://prod/honest/%d", i), fmt.Sprint(i%3), 0, fmt.Sprintf("c%d", i))
	}
	l.pass(settle)
	return l
}

// claimsCount lets the weights count that nodes claim.
func (l *lab) claimsCount() {
	l.SetCapacity(func(k *health.Checker, claim float64) { k.Weight, k.MaxChecksPerSecond = max(claim, 1), 0 })
	l.do(l.Apply(l.now))
}

// TestNoClaimGetsMoreThanFourTimesTheMedian: three checkers claim a weight of a million.
func TestNoClaimGetsMoreThanFourTimesTheMedian(t *testing.T) {
	l := honest(t)
	for zone := range 3 {
		l.come(fmt.Sprint("greedy", zone), fmt.Sprint(zone), 1e6, fmt.Sprint("x", zone))
	}
	l.pass(settle)
	for zone := range 3 {
		l.wantAtMost(400.*4/6, fmt.Sprint("x", zone))
		if k := l.checkers[fmt.Sprint("x", zone)]; k.Weight != 4 {
			t.Errorf("%s weighs %g", k.ID, k.Weight)
		}
	}
}

// TestIDsOfOneIdentityShareOnePart: somebody with one certificate comes under many ids.
func TestIDsOfOneIdentityShareOnePart(t *testing.T) {
	for _, count := range []int{2, 9, 20, 200} {
		manyOfOne(t, count)
	}
}

func manyOfOne(t *testing.T, count int) {
	l := honest(t)
	var ids []string
	for i := range count {
		ids = append(ids, fmt.Sprint("many", i))
		l.come("spiffe://prod/many", "1", 0, ids[i])
	}
	l.pass(settle)
	l.wantAtMost(1200./7, ids...)
	if count <= 20 { // more have less than their part, so others have more
		l.wantAtMost(1200./7, "c1")
		l.wantAtMost(1200./7, "c4")
	}

	l.lose(ids[1:]...)
	l.pass(longestHold + 10*grace) // many are not given up at once
	if k := l.checkers["many0"]; k.Weight != 1 {
		t.Errorf("%s weighs %g when the others are gone", k.ID, k.Weight)
	}
}

// TestAFleetMayShareOneCertificate: then each checker has its own share.
func TestAFleetMayShareOneCertificate(t *testing.T) {
	l := newLab(t, options(), 0, 600)
	l.claimsCount()
	for i := range 30 {
		l.come("spiffe://prod/checkers", fmt.Sprint(i%3), 0, fmt.Sprintf("c%d", i))
	}
	l.pass(settle)
	for i := range 30 {
		id := fmt.Sprintf("c%d", i)
		l.wantAtMost(1200./30, id)
		if k := l.checkers[id]; k.Weight != 1 {
			t.Errorf("%s weighs %g", id, k.Weight)
		}
	}
}
