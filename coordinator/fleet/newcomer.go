package fleet

import (
	"maps"
	"slices"
	"time"

	"hdsd/health"
)

// newcomer is a checker on probation. It probes a sample of what established checkers
// check, on top of the plan: its votes are compared, and decide nothing where an
// established checker has a seat. It takes a seat once it has agreed for long enough.
//
// Where nobody is established it is a founder: it has seats as any other.
type newcomer struct {
	since   time.Time
	founder bool
	judged  bool          // votes on it are expected
	agreed  time.Duration // for how long it has agreed
	looked  time.Time     // when that was last looked at
	against time.Time     // since when it disagrees; zero: it does not
}

// Comparison says how the vote of a newcomer relates to those of established checkers.
type Comparison uint8

// The comparisons.
const (
	Unreported Comparison = iota // it has not voted, and they have
	Alone                        // they say neither up nor down
	Same                         // as most established checkers
	Opposite
)

const (
	// largestSample is how many endpoints a newcomer probes at most. More would show no
	// more, and cost those that are attacked more.
	largestSample = 256

	// mostStranded is up to how many endpoints that nobody checks newcomers look at.
	mostStranded = 10_000

	// roundsToDisagree is for how many report intervals a newcomer may disagree before
	// its probation begins anew: it may only be later to see an outage.
	roundsToDisagree = 10
)

// onProbation reports whether a checker has a sample in place of seats.
func (k *checker) onProbation() bool { return k.newcomer != nil && !k.newcomer.founder }

// welcome begins the probation of a checker that has connected.
func (p *Probation) welcome(now time.Time, known *checker) {
	f := p.fleet
	p.unseat(known.ID) // one before it may have had seats
	f.planChurn(now)
	p.trySample(known)
	f.out.Recount, f.out.Newcomers = true, append(f.out.Newcomers, known.ID)
	f.out.Specify = append(f.out.Specify, known.ID)
}

// unseat gives up the seats of a checker with the next plan.
func (p *Probation) unseat(id string) {
	f := p.fleet
	delete(f.churn.moved, id)
	f.churn.waiting = slices.DeleteFunc(f.churn.waiting, func(waits string) bool { return waits == id })
	if _, seated := f.seats[id]; seated {
		f.churn.left[id] = true
	}
}

// dismiss forgets a newcomer that is gone. It has no seat to be kept.
func (p *Probation) dismiss(known *checker) {
	f := p.fleet
	p.unseat(known.ID)
	delete(f.checkers, known.ID)
	f.out.add(NewcomerLost, known)
	f.out.GivenUp = append(f.out.GivenUp, known.ID)
	f.out.Recount = true
}

// trySample takes from a newcomer's sample what it is not able to check any more, and gives it one if it has
// none, and what nobody else checks.
func (p *Probation) trySample(known *checker) {
	f := p.fleet
	if f.settling {
		return
	}
	before := len(f.samples[known.ID])
	unable := func(id health.EndpointID) bool { return !f.lookup.CanCheck(&known.Checker, id) }
	p.yield(known.ID, unable)
	maps.DeleteFunc(f.samples[known.ID], func(id health.EndpointID, _ bool) bool { return unable(id) })
	if able := len(f.samples[known.ID]); able < before {
		if f.note(known.ID); 2*able <= before { // too few to agree with
			p.endSample(known)
		}
	}
	var sample []health.EndpointID
	if len(f.samples[known.ID]) == 0 {
		sample = p.choose(known, p.sampleSize(known))
	}
	sample = append(sample, p.strandedFor(known, sample)...)
	if len(sample) > 0 {
		p.sample(known, sample)
	}
}

// sampleSize is the fair share of a newcomer, up to largestSample. Those of one identity
// divide it.
func (p *Probation) sampleSize(known *checker) int {
	f := p.fleet
	checks, checkers := 0, 1
	for _, n := range f.seats {
		checks += n
		checkers++
	}
	size := min(checks/checkers, largestSample)
	if known.Identity != "" {
		sharing := newSharing()
		for _, each := range f.checkers {
			sharing.add(&each.Checker)
		}
		whole := known.Checker
		whole.Weight = 1
		size = int(float64(size) * sharing.part(&whole))
	}
	return max(size, 1)
}

// choose picks endpoints of established checkers that a newcomer is able to check: some
// of each of them.
func (p *Probation) choose(known *checker, size int) (sample []health.EndpointID) {
	f := p.fleet
	var peers []string
	for id, each := range f.checkers {
		if f.silent[id] == nil && (each.newcomer == nil && each.connected || p.open && !each.onProbation()) {
			peers = append(peers, id)
		}
	}
	sortFor(known.ID, peers)
	chosen := map[health.EndpointID]bool{}
	each := max(size/max(len(peers), 1), 1)
	for round := 0; round < 2 && len(sample) < size; round++ { // the second takes what the first left
		for _, peer := range peers {
			left := min(each, size-len(sample))
			if round > 0 {
				left = size - len(sample)
			}
			for id := range f.planner.Endpoints(peer) {
				if left <= 0 {
					break
				}
				if !chosen[id] && f.lookup.CanCheck(&known.Checker, id) {
					chosen[id] = true
					sample = append(sample, id)
					left--
				}
			}
		}
	}
	if len(sample) == 0 && p.open {
		for id := range f.stranded { // what those that are away had
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

// strandedFor lists endpoints that nobody checks and a newcomer is able to check.
func (p *Probation) strandedFor(known *checker, chosen []health.EndpointID) (list []health.EndpointID) {
	f := p.fleet
	if len(f.stranded) == 0 || len(f.stranded) > mostStranded || p.awaitsFormer() {
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
func (p *Probation) look(now time.Time, known *checker, lasts time.Duration) bool {
	f := p.fleet
	n := known.newcomer
	p.trySample(known)
	passed := now.Sub(n.looked)
	n.looked = now
	sample, reported, compared, against := f.samples[known.ID], 0, 0, 0
	compare := f.lookup.Compare
	if p.awaitsFormer() {
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
