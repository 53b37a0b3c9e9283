package canary

import (
	"hdsd/envoy/specifier"
	"time"
)

// maxTrials bounds the clusters that a checker tries at once, and so the number of suspects at
// its loss.
const maxTrials = 256

// acceptWithin is the number of reports in which a canary must accept its specifier, beside the
// time of a first probe.
const acceptWithin = 3

// longestWait bounds the wait for a first probe. longestAccept bounds the part of that in which
// a canary must accept its specifier.
const (
	longestWait   = 12 * time.Second
	longestAccept = 5 * time.Second
)

// sureAfter is the number of additional reports required of a checker that had the cluster
// before: its reports look the same before and after the change if the endpoints are the same.
const sureAfter = 2

// trial is one version of a cluster at one checker.
type trial struct {
	cluster *cluster
	checker *checker
	alone   bool
	suspect bool      // the version was suspect at the beginning, so another loss decides
	had     bool      // the checker had the cluster before: its votes prove nothing about the new version
	serial  uint64    // of the first specifier with it; 0: not sent yet
	began   time.Time // time of that specifier

	accepted time.Time                // time of the first report that lists it; zero: none yet
	tried    []*shape                 // by their ids
	probes   map[specifier.Shape]bool // of these: whether a probe of an endpoint was seen
	waiting  int                      // number of shapes without a seen probe
}

// wait returns the longest wait for a first probe.
func (t *trial) wait() time.Duration { return min(t.cluster.probe, longestWait) }

// begin begins with the shapes to prove.
func (t *trial) begin(now time.Time, shapes []*shape) {
	t.had = t.had || t.serial != 0
	t.serial, t.began, t.accepted = 0, now, time.Time{}
	t.tried, t.probes, t.waiting = shapes, make(map[specifier.Shape]bool, len(shapes)), len(shapes)
	for _, s := range shapes {
		t.probes[s.id], s.trial = false, t
	}
}

// release makes the shapes free for other trials.
func (t *trial) release() {
	for _, s := range t.tried {
		if s.trial == t {
			s.trial = nil
		}
	}
}

// acceptBy returns the deadline for accepting a trial.
func (t *trial) acceptBy(report time.Duration) time.Time {
	return t.began.Add(acceptWithin*report + min(t.wait(), longestAccept))
}

// survived reports whether a checker that reports now has survived the first probe.
func (t *trial) survived(now time.Time, report time.Duration) bool {
	if t.accepted.IsZero() {
		return false
	}
	need := t.wait()
	if t.had {
		need += sureAfter * report
	}
	return t.waiting == 0 || now.Sub(t.accepted) >= need
}

// probe notes that an endpoint of a shape was probed.
func (t *trial) probe(s specifier.Shape) {
	if seen, tried := t.probes[s]; tried && !seen && !t.had && !t.accepted.IsZero() {
		t.probes[s] = true
		t.waiting--
	}
}
