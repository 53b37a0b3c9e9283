package hds

import (
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/caller"
	"hdsd/internal/share"
)

// AdmitRule admits the checkers that match all of it.
type AdmitRule struct {
	NodeID    func(id string) bool // nil: every id
	Addresses []netip.Prefix       // none: from everywhere
}

func (r *AdmitRule) matches(id string, from netip.Addr) bool {
	if r.NodeID != nil && !r.NodeID(id) {
		return false
	}
	for _, prefix := range r.Addresses {
		if prefix.Contains(from) {
			return true
		}
	}
	return len(r.Addresses) == 0
}

// memory is for how long a caller that has left is still known to have had a node id.
const memory = time.Minute

// countGone is for how long a node id counts towards those of its caller that has left.
const countGone = 10 * time.Second

// recountEvery is the shortest time between two counts of a caller's node ids while it has
// too many.
const recountEvery = 100 * time.Millisecond

// door decides which checkers may come in. Server.mu guards it.
type door struct {
	rules          []AdmitRule // none: everybody
	maxIDs         int
	joinsPerMinute int

	visitors map[string]*visitor // by caller.Key
	swept    time.Time

	told    time.Time // when a refusal was last logged
	omitted int       // refusals since then
}

// visitor is a caller that has checkers, or had some in the last minute.
type visitor struct {
	ids    map[string]*visit
	joins  float64 // how many more it may bring now
	filled time.Time
	full   time.Time // until then it has too many ids
}

// isFull reports whether the caller has as many ids as it may. Who has just left counts.
func (v *visitor) isFull(now time.Time, most int) bool {
	if len(v.ids) < most || now.Before(v.full) {
		return len(v.ids) >= most
	}
	count := 0
	for _, one := range v.ids {
		if one.sessions > 0 || now.Sub(one.left) < countGone {
			count++
		}
	}
	if count >= most {
		v.full = now.Add(recountEvery)
	}
	return count >= most
}

// visit is what a caller has under one node id.
type visit struct {
	sessions int
	left     time.Time
}

func newDoor(o *Options) door {
	return door{maxIDs: o.MaxIDsPerCaller, joinsPerMinute: o.MaxJoinsPerMinute, visitors: map[string]*visitor{}}
}

// admits returns an error if no rule admits a checker.
func (d *door) admits(id string, from *caller.Caller) error {
	if len(d.rules) == 0 {
		return nil
	}
	address, err := netip.ParseAddr(from.Host())
	if err != nil {
		address = netip.Addr{} // in no prefix
	}
	address = address.Unmap().WithZone("")
	for i := range d.rules {
		if d.rules[i].matches(id, address) {
			return nil
		}
	}
	return status.Errorf(codes.PermissionDenied,
		"no rule of checkers.admit admits node %q from %s: add one to hdsd's configuration whose node_id_glob and addresses match, or give the checker another node.id", id, from.Host())
}

// enter counts a session of a caller, or returns why it may not begin.
func (d *door) enter(now time.Time, id, key string) error {
	d.sweep(now)
	v := d.visitors[key]
	if v == nil {
		v = &visitor{ids: map[string]*visit{}, joins: float64(d.joinsPerMinute), filled: now}
		d.visitors[key] = v
	}
	if known := v.ids[id]; known != nil {
		known.sessions++
		return nil
	}
	rate := float64(d.joinsPerMinute)
	v.joins = min(rate, v.joins+rate*now.Sub(v.filled).Minutes())
	v.filled = now
	switch {
	case v.joins < 1:
		return status.Errorf(codes.ResourceExhausted,
			"%s brought %d new node ids within a minute, the most for one caller: let checkers keep their node.id when they come back, or raise limits.max_joins_per_minute", share.Name(key), d.joinsPerMinute)
	case v.isFull(now, d.maxIDs):
		return status.Errorf(codes.ResourceExhausted,
			"%s has checkers under %d node ids, the most for one caller, those that have just left included: raise limits.max_ids_per_caller, or give checkers certificates of their own", share.Name(key), d.maxIDs)
	}
	v.joins--
	v.ids[id] = &visit{sessions: 1}
	return nil
}

// leave ends a session of a caller.
func (d *door) leave(now time.Time, id, key string) {
	v := d.visitors[key]
	if v == nil || v.ids[id] == nil {
		return
	}
	one := v.ids[id]
	one.sessions--
	one.left = now
}

// sweep forgets who has left long ago.
func (d *door) sweep(now time.Time) {
	if now.Sub(d.swept) < memory {
		return
	}
	d.swept = now
	for key, v := range d.visitors {
		for id, one := range v.ids {
			if one.sessions == 0 && now.Sub(one.left) >= memory {
				delete(v.ids, id)
			}
		}
		if len(v.ids) == 0 && now.Sub(v.filled) >= memory {
			delete(d.visitors, key)
		}
	}
}

// tellPause is the time between two lines about refused checkers.
const tellPause = 10 * time.Second

// turnAway counts a checker that is refused, and logs one in a while.
func (s *Server) turnAway(id string, from *caller.Caller, why error) error {
	s.metrics.turnedAway.Inc()
	now := time.Now()
	if d := &s.door; now.Sub(d.told) >= tellPause {
		s.options.Log.Warn().Str("event", "checker_refused").Str("checker", id).Str("from", from.Host()).Str("identity", from.Identity).
			Int("others", d.omitted).Msg(status.Convert(why).Message())
		d.told, d.omitted = now, 0
	} else {
		d.omitted++
	}
	return why
}

// SetAdmission replaces the rules that admit checkers. No rules admit everybody. It ends
// the sessions that the new rules do not admit.
func (s *Server) SetAdmission(rules []AdmitRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.door.rules = rules
	for id, one := range s.sessions {
		if err := s.door.admits(id, &one.origin.Caller); err != nil && !one.ending {
			one.refused.Store(true)
			one.lifetime.stop(s.turnAway(id, &one.origin.Caller, err))
		}
	}
}
