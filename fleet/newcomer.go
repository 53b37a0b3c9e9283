package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// newcomer is a checker on probation. It probes a sample of the established checkers'
// endpoints, on top of the plan: its votes are compared, and decide nothing where an
// established checker has a seat. It takes a seat once it has agreed for long enough.
//
// Without established checkers it is a founder: it has seats as any other.
type newcomer struct {
	start   time.Time
	founder bool
	judged  bool          // votes on it are expected
	agreed  time.Duration // total time of agreement
	looked  time.Time     // time of the last comparison
	against time.Time     // start of its disagreement; zero: it agrees
}

// Comparison relates the vote of a newcomer to those of established checkers.
type Comparison uint8

// The comparisons.
const (
	Unreported Comparison = iota // it has not voted, they have
	Alone                        // they vote neither up nor down
	Same                         // like most established checkers
	Opposite
)

const (
	// largestSample is the largest number of endpoints in a sample. More would show no more,
	// and cost attacked endpoints more.
	largestSample = 256

	// mostStranded bounds the number of unchecked endpoints that newcomers look at.
	mostStranded = 10_000

	// roundsToDisagree is the number of report intervals after which a disagreement restarts
	// the probation: a newcomer may only be later to see an outage.
	roundsToDisagree = 10
)

// onProbation reports whether a checker has a sample in place of seats.
func (k *checker) onProbation() bool { return k.newcomer != nil && !k.newcomer.founder }

// welcome begins the probation of a checker that has connected.
func (f *Fleet) welcome(now time.Time, known *checker) {
	f.unseat(known.ID) // a predecessor of this id may have had seats
	f.planChurn(now)
	f.trySample(known)
	f.out.Recount, f.out.Newcomers = true, append(f.out.Newcomers, known.ID)
	f.out.Specify = append(f.out.Specify, known.ID)
}

// unseat gives up the seats of a checker with the next plan.
func (f *Fleet) unseat(id string) {
	delete(f.churn.moved, id)
	f.churn.waiting = slices.DeleteFunc(f.churn.waiting, func(waiting string) bool { return waiting == id })
	if _, seated := f.seats[id]; seated {
		f.churn.left[id] = true
	}
}

// dismiss forgets a newcomer that is gone. It has no seat to be kept.
func (f *Fleet) dismiss(known *checker) {
	f.unseat(known.ID)
	delete(f.checkers, known.ID)
	f.out.add(NewcomerLost, known)
	f.out.GivenUp = append(f.out.GivenUp, known.ID)
	f.out.Recount = true
}

// trySample removes endpoints that a newcomer cannot check any more from its sample, adds
// unchecked ones, and makes a sample if there is none.
func (f *Fleet) trySample(known *checker) {
	if f.settling {
		return
	}
	previous := len(f.samples[known.ID])
	unable := func(id health.EndpointID) bool { return !f.lookup.CanCheck(&known.Checker, id) }
	f.yield(known.ID, unable)
	maps.DeleteFunc(f.samples[known.ID], func(id health.EndpointID, _ bool) bool { return unable(id) })
	if able := len(f.samples[known.ID]); able < previous {
		if f.note(known.ID); 2*able <= previous { // too few to compare
			f.endSample(known)
		}
	}
	var sample []health.EndpointID
	if len(f.samples[known.ID]) == 0 {
		sample = f.choose(known, f.sampleSize(known))
	}
	sample = append(sample, f.strandedFor(known, sample)...)
	if len(sample) > 0 {
		f.sample(known, sample)
	}
}

// sampleSize is the fair share of a newcomer, up to largestSample. Those of one identity
// divide it.
func (f *Fleet) sampleSize(known *checker) int {
	checks, checkers := 0, 1
	for _, n := range f.seats {
		checks += n
		checkers++
	}
	size := min(checks/checkers, largestSample)
	if known.Identity != "" {
		sharing := newSharing()
		for _, other := range f.checkers {
			sharing.add(&other.Checker)
		}
		whole := known.Checker
		whole.Weight = 1
		size = int(float64(size) * sharing.part(&whole))
	}
	return max(size, 1)
}

// choose picks endpoints of established checkers that a newcomer is able to check: some
// of each of them.
func (f *Fleet) choose(known *checker, size int) (sample []health.EndpointID) {
	var peers []string
	for id, other := range f.checkers {
		if f.silent[id] == nil && (other.newcomer == nil && other.connected || f.probation.open && !other.onProbation()) {
			peers = append(peers, id)
		}
	}
	sortFor(known.ID, peers)
	chosen := map[health.EndpointID]bool{}
	share := max(size/max(len(peers), 1), 1)
	for round := 0; round < 2 && len(sample) < size; round++ { // the second fills the remaining places
		for _, peer := range peers {
			count := min(share, size-len(sample))
			if round > 0 {
				count = size - len(sample)
			}
			for id := range f.planner.Endpoints(peer) {
				if count <= 0 {
					break
				}
				if !chosen[id] && f.lookup.CanCheck(&known.Checker, id) {
					chosen[id] = true
					sample = append(sample, id)
					count--
				}
			}
		}
	}
	if len(sample) == 0 && f.probation.open {
		for _, id := range sortedKeys(f.stranded) { // endpoints of absent checkers
			if len(sample) == largestSample {
				break
			}
			if f.lookup.CanCheck(&known.Checker, id) {
				sample = append(sample, id)
			}
		}
	}
	return sample
}

// strandedFor lists unchecked endpoints that a newcomer is able to check.
func (f *Fleet) strandedFor(known *checker, chosen []health.EndpointID) (list []health.EndpointID) {
	if len(f.stranded) == 0 || len(f.stranded) > mostStranded || f.awaitsFormer() {
		return nil
	}
	for _, id := range sortedKeys(f.stranded) {
		if !f.samples[known.ID][id] && !slices.Contains(chosen, id) && f.lookup.CanCheck(&known.Checker, id) {
			if list = append(list, id); len(list) == largestSample {
				return list
			}
		}
	}
	return list
}

// look compares a newcomer with established checkers, and reports whether its probation
// is over.
func (f *Fleet) look(now time.Time, known *checker, lasts time.Duration) bool {
	n := known.newcomer
	f.trySample(known)
	passed := now.Sub(n.looked)
	n.looked = now
	sample, reported, compared, against := f.samples[known.ID], 0, 0, 0
	compare := f.lookup.Compare
	if f.awaitsFormer() {
		compare = f.lookup.CompareVerdict
	}
	for id, alone := range sample {
		if alone {
			reported++
			continue
		}
		switch compare(id, known.ID) {
		case Unreported:
			continue
		case Same:
			compared++
		case Opposite:
			compared++
			against++
		case Alone:
		}
		reported++
	}
	switch {
	case 20*against > compared: // more than one in twenty
		if n.against.IsZero() {
			n.against = now
		}
		if now.Sub(n.against) >= roundsToDisagree*f.options.Report {
			n.agreed = 0
		}
	case len(sample) == 0 || 2*reported < len(sample) || f.silent[known.ID] != nil || f.lookup.Standing(known.ID) > Blind:
		n.against = time.Time{}
	default:
		n.against = time.Time{}
		n.agreed += min(passed, 2*f.options.Report)
	}
	return n.agreed >= lasts
}
