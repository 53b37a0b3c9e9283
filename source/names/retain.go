package names

import (
	"net/netip"
	"slices"
	"time"
)

const (
	maxRetained = 100         // addresses of a name that its last answer lacks
	unjudgedFor = time.Minute // for so long an address without a verdict stays
	tellEvery   = time.Second // between reports of rotating names
)

// Standing is the state of an address that DNS no longer returns.
type Standing uint8

// The standings.
const (
	Down     Standing = iota // it is unhealthy, or not checked
	Unjudged                 // it is checked, and has no verdict, or one without votes
	Healthy
)

// retained is an address in use that the last answer lacks.
type retained struct {
	address netip.Addr
	good    time.Time // when it was last healthy, or returned by DNS
}

// outlasted reports whether DNS has denied addresses for long.
func (s *state) outlasted(now time.Time) bool {
	return !s.noneSince.IsZero() && now.Sub(s.noneSince) >= lasting
}

// current returns the addresses in use that the last answer has.
func (s *state) current() []netip.Addr {
	return slices.DeleteFunc(slices.Clone(s.answer.Addresses), func(address netip.Addr) bool {
		return slices.ContainsFunc(s.retained, func(r retained) bool { return r.address == address })
	})
}

// missing returns the addresses in use that a lookup's result lacks, if they stay while they are
// healthy.
func (b *book) missing(now time.Time, q Question, v4, v6 half) []netip.Addr {
	s := b.states[q]
	if s == nil || !q.Retain {
		return nil
	}
	o := combine(q.Family, s.current(), v4, v6)
	if len(o.addresses) == 0 && (o.failure != "" || !s.outlasted(now)) {
		return nil
	}
	answered := setOfAddresses(o.addresses)
	return slices.DeleteFunc(slices.Clone(s.answer.Addresses), func(address netip.Addr) bool { return answered[address] })
}

// follow adopts an answer. Addresses that it lacks stay while they are healthy; above the limit,
// the longest missing go first.
func (s *state) follow(now time.Time, answer []netip.Addr, standings map[netip.Addr]Standing) {
	answer = bounded(answer)
	answered := setOfAddresses(answer)
	s.rotates = s.rotates || slices.ContainsFunc(s.retained, func(r retained) bool { return answered[r.address] })
	list := s.retained
	for _, address := range s.current() {
		list = append(list, retained{address, now})
	}
	list = slices.DeleteFunc(list, func(r retained) bool {
		return answered[r.address] || standings[r.address] == Down || standings[r.address] == Unjudged && now.Sub(r.good) >= unjudgedFor
	})
	s.retained = list[max(0, len(list)-maxRetained):]
	s.answer.IgnoreNew = false
	for i := range s.retained {
		if r := &s.retained[i]; standings[r.address] == Healthy {
			r.good, s.answer.IgnoreNew = now, true
		}
		answer = append(answer, s.retained[i].address)
	}
	s.answer.Addresses = successor(s.answer.Addresses, answer)
}

// rotation returns how many addresses a name has beyond its last answer, if DNS rotates its
// addresses and tell is set: once a name, one name at a time.
func (b *book) rotation(now time.Time, q Question) (beyond int, tell bool) {
	s := b.states[q]
	if s == nil || !s.rotates || s.reported || now.Sub(b.reportedAt) < tellEvery {
		return 0, false
	}
	s.reported, b.reportedAt = true, now
	return len(s.retained), true
}

func setOfAddresses(addresses []netip.Addr) map[netip.Addr]bool {
	set := make(map[netip.Addr]bool, len(addresses))
	for _, address := range addresses {
		set[address] = true
	}
	return set
}
