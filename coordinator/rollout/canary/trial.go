package canary

import (
	"time"
)

// maxTrials bounds how many clusters a checker tries at once, and with that how many
// are suspect when it is lost.
const maxTrials = 256

// acceptWithin is how many reports a canary has to accept its specifier, beside the time
// of a first probe.
const acceptWithin = 3

// longestWait bounds how long a first probe is awaited. longestAccept bounds how much of that a canary has
// to accept its specifier.
const (
	longestWait   = 12 * time.Second
	longestAccept = 5 * time.Second
)

// sureAfter is how many reports more it takes where the checker had the cluster before:
// its reports look the same before and after the change if the endpoints are the same.
const sureAfter = 2

// trial is one version of a cluster at one checker.
type trial struct {
	cluster *cluster
	checker *checker
	alone   bool
	suspect bool      // the version was when it began, so that another loss decides
	had     bool      // the checker had the cluster before: its votes say nothing of the new version
	serial  uint64    // of the first specifier that has it; 0: not sent yet
	began   time.Time // when it was sent

	accepted time.Time      // when a report first showed it; zero: none has
	tried    []*shape       // by their ids
	probes   map[Shape]bool // of these: whether an endpoint was seen probed
	waiting  int            // shapes of which none was
}

// wait is how long a first probe is awaited.
func (t *trial) wait() time.Duration { return min(t.cluster.probe, longestWait) }

// begin begins with the shapes that are to be proven.
func (t *trial) begin(now time.Time, shapes []*shape) {
	t.had = t.had || t.serial != 0
	t.serial, t.began, t.accepted = 0, now, time.Time{}
	t.tried, t.probes, t.waiting = shapes, make(map[Shape]bool, len(shapes)), len(shapes)
	for _, s := range shapes {
		t.probes[s.id], s.trial = false, t
	}
}

// release lets others try the shapes.
func (t *trial) release() {
	for _, s := range t.tried {
		if s.trial == t {
			s.trial = nil
		}
	}
}

// acceptBy is when a trial ends that is not accepted.
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
func (t *trial) probe(s Shape) {
	if seen, tried := t.probes[s]; tried && !seen && !t.had && !t.accepted.IsZero() {
		t.probes[s] = true
		t.waiting--
	}
}
