package names

import (
	"net/netip"
	"slices"
	"time"
)

// Bounds of the book.
const (
	maxNames     = 10_000                 // questions in all
	maxAddresses = 1000                   // of one name
	leastWait    = 100 * time.Millisecond // between two lookups of a name
	mostWait     = 24 * time.Hour
	patience     = 15 * time.Second // until a name without an answer counts as failed
	lasting      = 5 * time.Minute  // for so long DNS has to deny addresses
	idleTime     = 24 * time.Hour   // for so long the addresses of an unused name stay on disk
)

// book is the state of each name, and when to ask again. It is pure, and guarded by its owner.
type book struct {
	states     map[Question]*state
	needs      map[string][]Question // by source
	idle       map[keptName]idle     // unused names, or names unused when they were first needed again
	serial     uint64                // counts changes of the answers
	reportedAt time.Time             // time of the last report of a rotating name
}

// keptName is a name whose last addresses are on disk.
type keptName struct {
	Host   string
	Family string
}

// idle is the state of an unused name: its source may not have answered yet.
type idle struct {
	addresses []netip.Addr
	start     time.Time
}

// state is the state of one question.
type state struct {
	users     int // sources that need it
	answer    Answer
	start     time.Time  // time of the first need
	due       time.Time  // time of the next lookup
	pending   bool       // a lookup is in progress
	failures  int        // in a row
	noneSince time.Time  // time since which DNS denies addresses; zero: it does not
	retained  []retained // addresses in use that the last answer lacks, the longest missing first
	rotates   bool       // DNS has returned one of those again
	reported  bool       // the rotation was reported
}

func newBook(now time.Time, kept map[keptName][]netip.Addr) *book {
	b := &book{states: map[Question]*state{}, needs: map[string][]Question{}, idle: map[keptName]idle{}}
	for name, addresses := range kept {
		b.idle[name] = idle{addresses, now}
	}
	return b
}

func (q *Question) kept() keptName { return keptName{q.Host, q.Family.String()} }

// need replaces the questions of a source. New names are asked for at once.
func (b *book) need(now time.Time, source string, questions []Question) {
	for _, q := range questions {
		s := b.states[q]
		if s == nil {
			if len(b.states) >= maxNames {
				continue
			}
			s = &state{start: now, due: now}
			if addresses := b.idle[q.kept()].addresses; len(addresses) > 0 {
				s.answer = Answer{Addresses: addresses, Known: true}
			}
			b.states[q] = s
		}
		s.users++
	}
	for _, q := range b.needs[source] {
		s := b.states[q]
		if s == nil {
			continue
		}
		if s.users--; s.users == 0 {
			b.forget(now, q, s)
		}
	}
	if b.needs[source] = b.known(questions); len(questions) == 0 {
		delete(b.needs, source)
	}
}

// forget drops a question, but not its addresses: it may come again with other settings.
func (b *book) forget(now time.Time, q Question, s *state) {
	delete(b.states, q)
	switch name := q.kept(); {
	case len(s.answer.Addresses) == 0:
		delete(b.idle, name)
	case len(b.idle) < maxNames:
		b.idle[name] = idle{s.answer.Addresses, now}
	}
}

// known omits the questions that were refused.
func (b *book) known(questions []Question) []Question {
	return slices.DeleteFunc(slices.Clone(questions), func(q Question) bool { return b.states[q] == nil })
}

// answer returns the answer to a question.
func (b *book) answer(q Question) Answer {
	if s := b.states[q]; s != nil {
		return s.answer
	}
	return Answer{Known: true, Problem: "hdsd resolves so many names that there is no room for this one"}
}

// due returns up to limit questions to ask now, and gives up waiting for first answers.
func (b *book) due(now time.Time, limit int) (questions []Question) {
	for q, s := range b.states {
		if !s.answer.Known && now.Sub(s.start) >= patience {
			s.answer.Known, s.answer.Problem = true, "there is no answer yet"
			b.serial++
		}
		if !s.pending && !s.due.After(now) && len(questions) < limit {
			s.pending = true
			questions = append(questions, q)
		}
	}
	return questions
}

// next returns when due has work, with or without room for more lookups; zero is at the next
// change.
func (b *book) next(room bool) (due time.Time) {
	earlier := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	for _, s := range b.states {
		if !s.pending && room {
			earlier(s.due)
		}
		if !s.answer.Known {
			earlier(s.start.Add(patience))
		}
	}
	return due
}

// record adds the result of a lookup, and the standings of the addresses that it lacks. random
// is between 0 and 1. It returns the answer before and after; ok is false if the question is no
// longer in use.
func (b *book) record(now time.Time, q Question, v4, v6 half, standings map[netip.Addr]Standing, random float64) (before, after Answer, ok bool) {
	s := b.states[q]
	if s == nil || !s.pending {
		return before, after, false
	}
	s.pending = false
	before = s.answer
	o := combine(q.Family, s.current(), v4, v6)
	s.answer.Known = true
	switch {
	case len(o.addresses) > 0:
		s.failures, s.noneSince, s.answer.Problem = 0, time.Time{}, ""
		s.follow(now, o.addresses, standings)
	case o.failure != "":
		s.failures++
		s.answer.Problem = o.failure
	default:
		if s.failures, s.answer.Problem = 0, o.noneReason; s.noneSince.IsZero() {
			s.noneSince = now
		}
		if !q.Keep && s.outlasted(now) {
			s.follow(now, nil, standings)
		}
	}
	s.due = now.Add(q.wait(o, s.failures, random))
	if !before.equal(s.answer) || before.Problem != s.answer.Problem {
		b.serial++
	}
	return before, s.answer, true
}

// bounded returns a copy of the addresses of an answer, without the excess.
func bounded(answer []netip.Addr) []netip.Addr {
	answer = slices.Clone(answer)
	if len(answer) > maxAddresses {
		slices.SortFunc(answer, netip.Addr.Compare)
		answer = answer[:maxAddresses]
	}
	return answer
}

// successor returns the addresses that follow others, which it may reorder. The first stays
// first, since it is that of a LOGICAL_DNS cluster; the same addresses stay as they are.
func successor(before, after []netip.Addr) []netip.Addr {
	if len(before) == 0 {
		return after
	}
	if i := slices.Index(after, before[0]); i > 0 {
		after = slices.Insert(slices.Delete(after, i, i+1), 0, before[0])
	}
	a, b := slices.Clone(before), slices.Clone(after)
	slices.SortFunc(a, netip.Addr.Compare)
	slices.SortFunc(b, netip.Addr.Compare)
	if slices.Equal(a, b) {
		return before
	}
	return after
}

// wait returns the pause after a lookup.
func (q *Question) wait(o outcome, failures int, random float64) time.Duration {
	d := q.Refresh
	switch {
	case o.failure != "" && q.FailureBase > 0:
		d = q.FailureBase
		for range min(failures-1, 60) {
			d = min(2*d, q.FailureMax)
		}
		d -= time.Duration(random * float64(d) / 2)
	case len(o.addresses) > 0 && q.RespectTTL && o.ttl > 0:
		d = max(o.ttl, q.LeastTTL) + time.Duration(random*float64(q.Jitter))
	default:
		d += time.Duration(random * float64(q.Jitter))
	}
	return min(max(d, leastWait), mostWait)
}
