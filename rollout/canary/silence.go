package canary

import "time"

// Silent notes that a checker stopped reporting on an open stream. Its trials go elsewhere, as
// if it had not accepted them. If its stream then ends before it reports again, as that of a
// hanging process does, that counts as its loss during the trials. The next trial waits for
// that.
func (l *Ledger) Silent(now time.Time, id string) {
	c := l.roster.checkers[id]
	if c == nil || !c.connected || c.silent {
		return
	}
	for _, name := range l.Trials(id) {
		t := c.trials[name]
		l.refuse(now, t)
		ended := &c.ended[len(c.ended)-1]
		ended.silent, ended.suspect = true, t.suspect
		if v := t.cluster.version; c.accepted {
			if wait := now.Add(firstRetry); v.retry.Before(wait) {
				v.retry = wait
			}
			l.schedule(v.retry)
		}
	}
	c.silent = true
}

// endSilence notes that a checker reports, and reports whether it was silent.
func (c *checker) endSilence() bool {
	if c == nil || !c.silent {
		return false
	}
	c.silent = false
	for i := range c.ended {
		c.ended[i].silent = false
	}
	return true
}
