package fleet

import "time"

// unwatched says since when no checker is connected, once it has been told.
type unwatched struct{ since time.Time }

// follow tells once when nobody is left that checks anything, and once when that is over.
// It is called after each change of who is connected, and when hdsd has settled: before
// that, checkers are expected that have not come yet.
func (u *unwatched) follow(now time.Time, connected int, out *Effects) {
	switch told := !u.since.IsZero(); {
	case connected == 0 && !told:
		u.since = now
		out.Events = append(out.Events, Event{Kind: NoCheckers})
	case connected > 0 && told:
		out.Events = append(out.Events, Event{Kind: NoCheckersOver, Lasted: now.Sub(u.since)})
		u.since = time.Time{}
	}
}
