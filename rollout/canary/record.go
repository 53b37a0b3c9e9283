package canary

import (
	"crypto/sha256"
	"encoding/hex"
	"hdsd/envoy/specifier"
	"maps"
	"slices"
	"time"
)

// Record is the stored form of a proof or a charge.
type Record struct {
	Proven  []Proof
	Blamed  []specifier.Shape
	Losses  []Loss
	Retries int // trials after two losses that ended with another
}

// Prefixes of the names of records. No cluster has such a name.
const (
	provenPrefix = "\x00proven " // of a shape
	lostPrefix   = "\x00lost "   // of shapes that are suspect or blocked
)

// recordName returns the name of the record of shapes.
func recordName(prefix, key string) string {
	sum := sha256.Sum256([]byte(key))
	return prefix + hex.EncodeToString(sum[:16])
}

// Changed returns the records that have changed since the last call, by their names; nil for
// removed ones. Names have no meaning elsewhere.
func (l *Ledger) Changed() map[string]*Record { return l.shapes.records() }

func (a *shapes) records() map[string]*Record {
	records := make(map[string]*Record, len(a.changed)+len(a.unsaved))
	for id := range a.changed {
		name := recordName(provenPrefix, versionKey([]specifier.Shape{id}))
		records[name] = nil
		if s := a.known[id]; s != nil && len(s.proven) > 0 {
			records[name] = s.record()
		}
	}
	for name, c := range a.unsaved {
		records[name] = nil
		if c != nil {
			records[name] = c.record()
		}
	}
	clear(a.changed)
	clear(a.unsaved)
	return records
}

func (s *shape) record() *Record {
	r := &Record{}
	for _, b := range s.proven {
		r.Proven = append(r.Proven, Proof{b, s.id})
	}
	return r
}

func (c *charge) record() *Record {
	return &Record{Blamed: ids(c.shapes), Losses: slices.Clone(c.losses), Retries: c.retries}
}

// Restore restores a record, before any cluster is Set.
func (l *Ledger) Restore(r Record) {
	l.shapes.restoring = true
	l.shapes.restore(r)
}

func (a *shapes) restore(r Record) {
	for _, p := range r.Proven {
		a.prove(a.get(p.Shape), p.Build)
	}
	if len(r.Losses) == 0 || len(r.Blamed) == 0 {
		return
	}
	c := &charge{retries: max(0, r.Retries)}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(r.Blamed))) {
		c.shapes = append(c.shapes, a.get(id))
	}
	for _, loss := range r.Losses[:min(len(r.Losses), 2)] {
		if loss.Identity == "" {
			loss.Identity = loss.Checker
		}
		c.losses = append(c.losses, loss)
	}
	a.charge(c)
}

// ForgetAbsent forgets the restored records of shapes that no cluster has. It keeps some
// proofs.
func (l *Ledger) ForgetAbsent() {
	if l.shapes.restoring {
		l.shapes.forgetAbsent()
	}
}

func (a *shapes) forgetAbsent() {
	a.restoring = false
	a.dropUnused()
	for _, id := range slices.Sorted(maps.Keys(a.known)) {
		if s := a.known[id]; s != nil {
			a.tidy(s)
		}
	}
}

// Standing is the standing of a cluster, for people.
type Standing struct {
	Canary    string    // where it is on trial, or another cluster with shapes of it; empty: nowhere
	With      string    // that other cluster; empty: it is on trial itself
	Losses    []Loss    // one: it is suspect; two: it is blocked
	RefusedBy string    // the last checker that did not accept it; empty: none
	Retry     time.Time // when it is tried again after that, or after it was blocked
}

// Standing returns the standing of a cluster.
func (l *Ledger) Standing(name string) Standing {
	k := l.clusters[name]
	if k == nil {
		return Standing{}
	}
	v := k.version
	s := Standing{RefusedBy: v.refusedBy, Retry: v.retry}
	for _, c := range v.charges() {
		if c.blocks(v) {
			s.Losses, s.Retry = slices.Clone(c.losses), v.blockedUntil(c.losses[1].Time)
			break
		}
		if s.Losses == nil {
			s.Losses = slices.Clone(c.losses[:1])
		}
	}
	if k.trial != nil {
		s.Canary = k.trial.checker.id
		return s
	}
	for _, shape := range v.shapes {
		if t := shape.trial; t != nil {
			s.Canary, s.With = t.checker.id, t.cluster.name
			break
		}
	}
	return s
}

// Blocked reports whether no checker may try a cluster.
func (l *Ledger) Blocked(name string) bool {
	k := l.clusters[name]
	return k != nil && k.version.blocked()
}

// BlockedClusters counts the clusters that are blocked.
func (l *Ledger) BlockedClusters() int {
	blocked := map[*version]struct{}{}
	for _, c := range l.shapes.charges {
		for _, v := range c.shapes[0].versions {
			if c.blocks(v) {
				blocked[v] = struct{}{}
			}
		}
	}
	n := 0
	for v := range blocked {
		n += v.clusters
	}
	return n
}
