package canary

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Record is what outlives the process.
type Record struct {
	Proven []Proof
	Blamed []Shape
	Losses []Loss
}

// Record gives that of a cluster, in one order; false where there is nothing
// to keep. It may hold on to no more than a bounded number of proofs.
func (l *Ledger) Record(name string) (Record, bool) {
	k := l.clusters[name]
	if k == nil || len(k.proven)+len(k.losses) == 0 {
		return Record{}, false
	}
	r := Record{Blamed: slices.Clone(k.blamed), Losses: slices.Clone(k.losses)}
	present := func(p Proof) bool { return contains(k.version.Shapes, []Shape{p.Shape}) }
	r.Proven = slices.SortedFunc(maps.Keys(k.proven), func(a, b Proof) int {
		if x, y := present(a), present(b); x != y {
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

// Restore takes up what was recorded of a cluster, before it is Set.
func (l *Ledger) Restore(name string, r Record) {
	k := l.cluster(name)
	for _, p := range r.Proven {
		k.proven[p] = struct{}{}
	}
	if len(r.Losses) > 0 && len(k.losses) == 0 {
		l.suspects++
		k.blamed, k.losses = slices.Clone(r.Blamed), slices.Clone(r.Losses[:min(len(r.Losses), 2)])
		slices.Sort(k.blamed)
		if len(k.losses) > 1 {
			l.blocked++
		}
	}
}

// Standing is how a cluster stands, for people.
type Standing struct {
	Canary    string    // where it is on trial; empty: nowhere
	Losses    []Loss    // one: it is suspect; two: it is in quarantine
	RefusedBy string    // the last checker that did not take it; empty: none
	Retry     time.Time // when it is tried again after that
}

// Standing gives that of a cluster.
func (l *Ledger) Standing(name string) Standing {
	k := l.clusters[name]
	if k == nil {
		return Standing{}
	}
	s := Standing{Losses: slices.Clone(k.losses), RefusedBy: k.refusedBy, Retry: k.retry}
	if k.trial != nil {
		s.Canary = k.trial.checker.id
	}
	return s
}

// Blocked tells whether nobody may try a cluster.
func (l *Ledger) Blocked(name string) bool {
	k := l.clusters[name]
	return k != nil && len(k.losses) > 1
}

// BlockedClusters is how many clusters are in quarantine.
func (l *Ledger) BlockedClusters() int { return l.blocked }
