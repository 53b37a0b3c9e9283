package canary

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Record is what outlives the process.
type Record struct {
	Proven  []Proof
	Blamed  []Shape
	Losses  []Loss
	Retries int // trials that a blocked version had, and did not survive
}

// Record returns that of a cluster, in one order; false if there is nothing to keep. The
// number of its proofs is bounded.
func (l *Ledger) Record(name string) (Record, bool) {
	k := l.clusters[name]
	if k == nil || len(k.proven)+len(k.losses) == 0 {
		return Record{}, false
	}
	r := Record{Blamed: slices.Clone(k.blamed), Losses: slices.Clone(k.losses), Retries: k.retries}
	r.Proven = slices.SortedFunc(maps.Keys(k.proven), func(a, b Proof) int {
		if x, y := k.has(a.Shape), k.has(b.Shape); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Build, b.Build), cmp.Compare(a.Shape, b.Shape))
	})
	r.Proven = r.Proven[:min(len(r.Proven), maxProofs)]
	return r, true
}

// Restore takes up the record of a cluster, before it is Set.
func (l *Ledger) Restore(name string, r Record) {
	k := l.cluster(name)
	for _, p := range r.Proven {
		k.proven[p] = struct{}{}
	}
	if k.suspect() || len(r.Losses) == 0 {
		return
	}
	k.blamed = slices.Clone(r.Blamed)
	slices.Sort(k.blamed)
	k.retries = max(0, r.Retries)
	for _, loss := range r.Losses[:min(len(r.Losses), 2)] {
		if loss.Identity == "" {
			loss.Identity = loss.Checker
		}
		k.losses = append(k.losses, loss)
		l.tally.count(k, 1)
	}
}

// Standing is how a cluster stands, for people.
type Standing struct {
	Canary    string    // where it is on trial; empty: nowhere
	Losses    []Loss    // one: it is suspect; two: it is blocked
	RefusedBy string    // the last checker that did not accept it; empty: none
	Retry     time.Time // when it is tried again after that, or after it was blocked
}

// Standing returns that of a cluster.
func (l *Ledger) Standing(name string) Standing {
	k := l.clusters[name]
	if k == nil {
		return Standing{}
	}
	s := Standing{Losses: slices.Clone(k.losses), RefusedBy: k.refusedBy, Retry: k.retry}
	if k.blocked() {
		last := k.losses[1].Time
		s.Retry = k.blockedUntil(last)
	}
	if k.trial != nil {
		s.Canary = k.trial.checker.id
	}
	return s
}

// Blocked reports whether nobody may try a cluster.
func (l *Ledger) Blocked(name string) bool {
	k := l.clusters[name]
	return k != nil && k.blocked()
}

// BlockedClusters counts the clusters that are blocked.
func (l *Ledger) BlockedClusters() int { return l.tally.blocked }
