package etcd

import (
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// Status is the state of the session, and its problems.
type Status struct {
	Connected bool          // the lease was renewed at the last attempt
	Since     time.Time     // time of the latest change of Connected
	TTL       time.Duration // granted TTL; 0 before the first lease
	Problems  []Problem     // the oldest first
}

// Problem is an error of a task. The task retries.
type Problem struct {
	Task  Task
	Since time.Time // of the first error after a success
	Err   error     // the latest one
}

// Task is a lasting task of a replica.
type Task string

// The tasks of a replica.
const (
	TaskSession  Task = "session"  // keeps the lease
	TaskRegister Task = "register" // keeps the replica's key
	TaskView     Task = "view"     // reads the replicas and the leader
	TaskJoin     Task = "join"
	TaskCampaign Task = "campaign"
	TaskFollow   Task = "follow"
	TaskCommit   Task = "commit" // of a leader
)

// board holds the status, and logs its changes.
type board struct {
	cell *cell[Status]
	log  zerolog.Logger
}

func newBoard(log zerolog.Logger) *board {
	b := &board{newCell[Status](), log}
	b.cell.set(Status{Since: time.Now()})
	return b
}

// fail records an error of a task.
func (b *board) fail(task Task, err error) {
	now := time.Now()
	b.cell.update(func(s Status) (Status, bool) {
		next, news := s.failed(Problem{task, now, err})
		if news {
			b.log.Warn().Str("event", "etcd_trouble").Str("task", string(task)).Err(err).Msg("goes on trying")
		}
		return next, true
	})
}

// clear records the success of a task.
func (b *board) clear(task Task) {
	now := time.Now()
	b.cell.update(func(s Status) (Status, bool) {
		next, news := s.cleared(task, now)
		if news {
			b.log.Info().Str("event", "etcd_works").Str("task", string(task)).Msg("")
		}
		return next, news || next.Connected != s.Connected
	})
}

// granted records the granted TTL.
func (b *board) granted(wanted, ttl time.Duration) {
	b.cell.update(func(s Status) (Status, bool) {
		if s.TTL == ttl {
			return s, false
		}
		b.log.Info().Str("event", "etcd_session").Stringer("session_ttl", wanted).Stringer("granted_ttl", ttl).Msg("")
		s.TTL = ttl
		return s, true
	})
}

// failed returns the status with a problem, and reports whether the kind of the problem is new.
func (s Status) failed(p Problem) (next Status, news bool) {
	news = true
	s.Problems = slices.Clone(s.Problems)
	if i := slices.IndexFunc(s.Problems, func(q Problem) bool { return q.Task == p.Task }); i >= 0 {
		news = !errors.Is(p.Err, kindOfProblem(s.Problems[i].Err))
		s.Problems[i].Err = p.Err
	} else {
		s.Problems = append(s.Problems, p)
	}
	if p.Task == TaskSession && s.Connected {
		s.Connected, s.Since = false, p.Since
	}
	return s, news
}

// cleared returns the status without the problem of a task, and reports whether there was one.
func (s Status) cleared(task Task, now time.Time) (next Status, news bool) {
	before := len(s.Problems)
	s.Problems = slices.DeleteFunc(slices.Clone(s.Problems), func(p Problem) bool { return p.Task == task })
	if task == TaskSession && !s.Connected {
		s.Connected, s.Since = true, now
	}
	return s, len(s.Problems) < before
}

// kindOfProblem returns the error of this package that an error wraps, or the error itself.
func kindOfProblem(err error) error {
	for _, kind := range []error{ErrUnavailable, ErrTLS, ErrAuthentication, ErrPermission, ErrNoSpace, ErrDuplicate} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}
