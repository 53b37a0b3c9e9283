package replica

import (
	"time"

	"hdsd/log"
	"hdsd/log/batch"
)

const (
	// batchRecords bounds a batch, but for the entries of one step, which stay together.
	batchRecords = 16_384

	// maxRecords bounds the entries that wait while commits are stuck: some hundred megabytes.
	maxRecords = 1 << 20

	// commitPatience is the time after which commits are stuck.
	commitPatience = 5 * time.Second
)

// committer makes batches of the entries of a leader, and commits them one at a time.
type committer struct {
	interval time.Duration
	patience time.Duration
	limit    int // bytes of a payload
	max      int // records that may wait

	progress time.Time // of the latest success, or since when there is something to commit
	epoch    int64
	next     uint64 // sequence of the next commit
	flying   bool   // that commit is in flight
	nextTime time.Time
	frames   [][]byte // of the batch in progress, beginning with the next commit
	batched  uint64   // number of steps in it

	waiting []step
	records int    // in waiting
	added   uint64 // number of steps added so far
	done    uint64 // number of steps in the log
}

// step has the entries of one step of the machine. They are in one batch, so a follower sees all of them or none.
type step struct {
	entries []*log.Entry
	records int
}

// begin begins a term, after the entry at a sequence. A batch in progress is given up.
func (c *committer) begin(now time.Time, epoch int64, head uint64) {
	*c = committer{interval: c.interval, patience: c.patience, limit: c.limit, max: c.max, epoch: epoch, next: head + 1, nextTime: c.nextTime}
	if c.nextTime.After(now.Add(c.interval)) { // the clock has gone back
		c.nextTime = now
	}
}

// add adds the entries of a step. It returns false if commits are stuck, and too many wait.
func (c *committer) add(now time.Time, entries []*log.Entry) bool {
	if len(entries) == 0 {
		return true
	}
	if len(c.frames)+len(c.waiting) == 0 {
		c.progress = now
	}
	s := step{entries: entries}
	for _, e := range entries {
		s.records += countRecords(e)
	}
	c.waiting = append(c.waiting, s)
	c.records += s.records
	c.added++
	return c.records <= c.max || now.Sub(c.progress) < c.patience
}

// countRecords returns the size of an entry in records, of some tens of bytes each.
func countRecords(e *log.Entry) int {
	count := 1 + len(e.Overrides) + len(e.Clusters) + len(e.Voted) + len(e.Transitions) + len(e.Unvoted) + len(e.TakenOver) + len(e.GivenBack) + len(e.Removed)
	count += len(e.Established) + len(e.Trials) + len(e.Penalties) + len(e.Events)
	for _, hashes := range e.Plan {
		count += 1 + len(hashes)
	}
	if e.Held != nil {
		count += len(e.Held.Held)
	}
	if e.Freeze != nil && e.Freeze.After != nil {
		count += len(e.Freeze.After.Held)
	}
	return count
}

// discard gives up the entries that are not in the batch in progress.
func (c *committer) discard() { c.waiting, c.records = nil, 0 }

// commit returns the next commit if it is due.
func (c *committer) commit(now time.Time) (due Commit, ok bool, err error) {
	if c.flying || len(c.frames)+len(c.waiting) == 0 || now.Before(c.nextTime) {
		return due, false, nil
	}
	if len(c.frames) == 0 {
		if err := c.fill(); err != nil {
			return due, false, err
		}
	}
	c.flying, c.nextTime = true, now.Add(c.interval)
	return Commit{c.epoch, c.next, c.frames[0]}, true, nil
}

// fill makes the next batch.
func (c *committer) fill() error {
	var entries []*log.Entry
	steps, records := 0, 0
	for ; steps < len(c.waiting) && (steps == 0 || records+c.waiting[steps].records <= batchRecords); steps++ {
		entries = append(entries, c.waiting[steps].entries...)
		records += c.waiting[steps].records
	}
	encoded, err := batch.Encode(entries)
	if err != nil {
		return err
	}
	c.frames, c.batched = batch.Frames(encoded, c.limit), uint64(steps)
	clear(c.waiting[:steps])
	c.waiting = c.waiting[steps:]
	c.records -= records
	return nil
}

// committed handles the success of a commit.
func (c *committer) committed(now time.Time, epoch int64, sequence uint64) {
	if !c.awaits(epoch, sequence) {
		return
	}
	c.flying, c.progress = false, now
	c.next++
	if c.frames = c.frames[1:]; len(c.frames) == 0 {
		c.done += c.batched
		c.batched = 0
	}
}

// undecided lets a commit be repeated.
func (c *committer) undecided(epoch int64, sequence uint64) {
	if c.awaits(epoch, sequence) {
		c.flying = false
	}
}

func (c *committer) awaits(epoch int64, sequence uint64) bool {
	return c.flying && c.epoch == epoch && c.next == sequence
}

// idle reports whether no batch is in progress.
func (c *committer) idle() bool { return len(c.frames) == 0 }

// due returns the time of the next commit, if there is one.
func (c *committer) due() (time.Time, bool) {
	return c.nextTime, !c.flying && len(c.frames)+len(c.waiting) > 0
}
