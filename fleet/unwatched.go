package fleet

import "time"

// unwatched is the reported start of a time without connected checkers.
type unwatched struct{ start time.Time }

// follow reports once when no checker is connected any more, and once when one is again. It is
// called after each change of the connected checkers, and at the end of settling: before that,
// checkers are still expected.
func (u *unwatched) follow(now time.Time, connected int, out *Effects) {
	switch told := !u.start.IsZero(); {
	case connected == 0 && !told:
		u.start = now
		out.Events = append(out.Events, Event{Kind: NoCheckers})
	case connected > 0 && told:
		out.Events = append(out.Events, Event{Kind: NoCheckersOver, Lasted: now.Sub(u.start)})
		u.start = time.Time{}
	}
}
