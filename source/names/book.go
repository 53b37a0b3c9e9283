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
	lasting      = 5 * time.Minute  // for so long DNS has to say that there are no addresses
	idleTime     = 24 * time.Hour   // for so long the addresses of a name stay on disk that nobody needs
)

// book is what is known of each name, and when to ask again. It is pure, and guarded by
// its owner.
type book struct {
	states map[Question]*state
	needs  map[string][]Question // by source
	idle   map[keptName]idle     // names that nobody needs, or did not when they were first needed again
	serial uint64                // counts changes of the answers
	told   time.Time             // when it was last told that a name rotates
}

// keptName is a name whose last addresses are on disk.
type keptName struct {
	Host   string
	Family string
}

// idle is what is known of a name that nobody needs: its source may not have answered yet.
type idle struct {
	addresses []netip.Addr
	since     time.Time
}

// state is what is known of one question.
type state struct {
	users    int // sources that need it
	answer   Answer
	since    time.Time  // it is needed
	due      time.Time  // ask again
	asked    bool       // and not answered yet
	failures int        // in a row
	none     time.Time  // since DNS says so; zero: it does not
	retained []retained // addresses in use that the last answer lacks, the longest missing first
	rotates  bool       // DNS has given one of those again
	told     bool       // that it does
}

func newBook(now time.Time, kept map[keptName][]netip.Addr) *book {
	b := &book{states: map[Question]*state{}, needs: map[string][]Question{}, idle: map[keptName]idle{}}
	for name, addresses := range kept {
		b.idle[name] = idle{addresses, now}
	}
	return b
}

func (q *Question) kept() keptName { return keptName{q.Host, q.Family.String()} }

// need replaces what a source needs to know. New names are asked for at once.
func (b *book) need(now time.Time, source string, all []Question) {
	for _, q := range all {
		s := b.states[q]
		if s == nil {
			if len(b.states) >= maxNames {
				continue
			}
			s = &state{since: now, due: now}
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
	if b.needs[source] = b.known(all); len(all) == 0 {
		delete(b.needs, source)
	}
}

// forget drops a question, but for its addresses: it may come again in other words.
func (b *book) forget(now time.Time, q Question, s *state) {
	delete(b.states, q)
	switch name := q.kept(); {
	case len(s.answer.Addresses) == 0:
		delete(b.idle, name)
	case len(b.idle) < maxNames:
		b.idle[name] = idle{s.answer.Addresses, now}
	}
}

// known leaves out the questions that were refused.
func (b *book) known(all []Question) []Question {
	return slices.DeleteFunc(slices.Clone(all), func(q Question) bool { return b.states[q] == nil })
}

// answer returns what is known of a question.
func (b *book) answer(q Question) Answer {
	if s := b.states[q]; s != nil {
		return s.answer
	}
	return Answer{Known: true, Problem: "hdsd resolves so many names that there is no room for this one"}
}

// due returns up to so many questions to ask now, and gives up waiting for first answers.
func (b *book) due(now time.Time, most int) (all []Question) {
	for q, s := range b.states {
		if !s.answer.Known && now.Sub(s.since) >= patience {
			s.answer.Known, s.answer.Problem = true, "there is no answer yet"
			b.serial++
		}
		if !s.asked && !s.due.After(now) && len(all) < most {
			s.asked = true
			all = append(all, q)
		}
	}
	return all
}

// next returns when due has something to do, with or without room for more lookups; zero is
// when something changes.
func (b *book) next(room bool) (at time.Time) {
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, s := range b.states {
		if !s.asked && room {
			earlier(s.due)
		}
		if !s.answer.Known {
			earlier(s.since.Add(patience))
		}
	}
	return at
}

// take takes the result of a lookup, and the standing of the addresses that it would take
// away. random is between 0 and 1. It returns the answer before and after; ok is false if
// nobody needs it any more.
func (b *book) take(now time.Time, q Question, v4, v6 half, standings map[netip.Addr]Standing, random float64) (before, after Answer, ok bool) {
	s := b.states[q]
	if s == nil || !s.asked {
		return before, after, false
	}
	s.asked = false
	before = s.answer
	o := combine(q.Family, s.given(), v4, v6)
	s.answer.Known = true
	switch {
	case len(o.addresses) > 0:
		s.failures, s.none, s.answer.Problem = 0, time.Time{}, ""
		s.follow(now, o.addresses, standings)
	case o.failure != "":
		s.failures++
		s.answer.Problem = o.failure
	default:
		if s.failures, s.answer.Problem = 0, o.none; s.none.IsZero() {
			s.none = now
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

// bounded returns a copy of the addresses of an answer, without those that are too many.
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

// wait returns how long to wait after a lookup.
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
