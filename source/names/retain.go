package names

import (
	"net/netip"
	"slices"
	"time"
)

const (
	maxRetained = 100         // addresses of a name that its last answer lacks
	unjudgedFor = time.Minute // so long one of them stays that has no verdict
	tellEvery   = time.Second // that a name rotates
)

// Standing is what is known of an address that DNS gives no longer.
type Standing uint8

// The standings.
const (
	Down     Standing = iota // it is unhealthy, or nobody checks it
	Unjudged                 // it is checked, and has no verdict, or one without votes
	Healthy
)

// retained is an address in use that the last answer lacks.
type retained struct {
	address netip.Addr
	good    time.Time // when it was last healthy, or given by DNS
}

// outlasted reports whether DNS has said for long that there are no addresses.
func (s *state) outlasted(now time.Time) bool { return !s.none.IsZero() && now.Sub(s.none) >= lasting }

// given returns the addresses in use that the last answer has.
func (s *state) given() []netip.Addr {
	return slices.DeleteFunc(slices.Clone(s.answer.Addresses), func(address netip.Addr) bool {
		return slices.ContainsFunc(s.retained, func(r retained) bool { return r.address == address })
	})
}

// missing returns the addresses in use that the result of a lookup would take away, if they
// stay while they are healthy.
func (b *book) missing(now time.Time, q Question, v4, v6 half) []netip.Addr {
	s := b.states[q]
	if s == nil || !q.Retain {
		return nil
	}
	o := combine(q.Family, s.given(), v4, v6)
	if len(o.addresses) == 0 && (o.failure != "" || !s.outlasted(now)) {
		return nil
	}
	answered := setOfAddresses(o.addresses)
	return slices.DeleteFunc(slices.Clone(s.answer.Addresses), func(address netip.Addr) bool { return answered[address] })
}

// follow takes an answer over. Addresses that it lacks stay while they are healthy; the
// longest missing go first where there are too many.
func (s *state) follow(now time.Time, answer []netip.Addr, standings map[netip.Addr]Standing) {
	answer = bounded(answer)
	answered := setOfAddresses(answer)
	s.rotates = s.rotates || slices.ContainsFunc(s.retained, func(r retained) bool { return answered[r.address] })
	all := s.retained
	for _, address := range s.given() {
		all = append(all, retained{address, now})
	}
	all = slices.DeleteFunc(all, func(r retained) bool {
		return answered[r.address] || standings[r.address] == Down || standings[r.address] == Unjudged && now.Sub(r.good) >= unjudgedFor
	})
	s.retained = all[max(0, len(all)-maxRetained):]
	s.answer.IgnoreNew = false
	for i := range s.retained {
		if r := &s.retained[i]; standings[r.address] == Healthy {
			r.good, s.answer.IgnoreNew = now, true
		}
		answer = append(answer, s.retained[i].address)
	}
	s.answer.Addresses = successor(s.answer.Addresses, answer)
}

// rotation returns how many addresses a name has beyond its last answer, if DNS gives its
// addresses in turn and that has to be told: once a name, one name at a time.
func (b *book) rotation(now time.Time, q Question) (beyond int, tell bool) {
	s := b.states[q]
	if s == nil || !s.rotates || s.told || now.Sub(b.told) < tellEvery {
		return 0, false
	}
	s.told, b.told = true, now
	return len(s.retained), true
}

func setOfAddresses(all []netip.Addr) map[netip.Addr]bool {
	set := make(map[netip.Addr]bool, len(all))
	for _, address := range all {
		set[address] = true
	}
	return set
}
