package hds

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/peer"
	"hdsd/peer/limit"
)

// AdmitRule admits the checkers that match all of its fields.
type AdmitRule struct {
	NodeID    func(id string) bool // nil: every id
	Addresses []netip.Prefix       // none: all addresses
}

func (r *AdmitRule) matches(id string, address netip.Addr) bool {
	if r.NodeID != nil && !r.NodeID(id) {
		return false
	}
	for _, prefix := range r.Addresses {
		if prefix.Contains(address) {
			return true
		}
	}
	return len(r.Addresses) == 0
}

// memory is the time for which a departed caller's node ids are remembered.
const memory = time.Minute

// countGone is the time for which a departed caller's node ids count.
const countGone = 10 * time.Second

// recountEvery is the shortest time between two counts of a caller's node ids while it has too
// many.
const recountEvery = 100 * time.Millisecond

// door decides which checkers are admitted. Server.mu guards it.
type door struct {
	rules          []AdmitRule // none: all checkers
	maxIDs         int
	joinsPerMinute int

	visitors map[string]*visitor // by caller.Key
	swept    time.Time

	pace limit.Pace // of refusals in the log
}

// visitor is a caller with checkers now or in the last minute.
type visitor struct {
	ids   map[string]*visit
	joins *rate.Limiter // its remaining joins
	tried time.Time     // time of its last attempt
	full  time.Time     // time until which it has too many ids
}

// isFull reports whether the caller has reached its limit of ids, including those that left just
// now.
func (v *visitor) isFull(now time.Time, limit int) bool {
	if len(v.ids) < limit || now.Before(v.full) {
		return len(v.ids) >= limit
	}
	count := 0
	for _, visit := range v.ids {
		if visit.sessions > 0 || now.Sub(visit.left) < countGone {
			count++
		}
	}
	if count >= limit {
		v.full = now.Add(recountEvery)
	}
	return count >= limit
}

// visit is a caller's use of one node id.
type visit struct {
	sessions int
	left     time.Time
}

func newDoor(o *Options) door {
	return door{maxIDs: o.MaxIDsPerCaller, joinsPerMinute: o.MaxJoinsPerMinute, visitors: map[string]*visitor{}, pace: limit.Pace{Interval: tellPause}}
}

// admits returns an error if no rule admits a checker.
func (d *door) admits(id string, caller *peer.Caller) error {
	if len(d.rules) == 0 {
		return nil
	}
	address, err := netip.ParseAddr(caller.Host())
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
		"no rule of checkers.admit admits node %q from %s: add one to hdsd's configuration whose node_id_glob and addresses match, or give the checker another node.id", id, caller.Host())
}

// enter counts a session of a caller, or returns the reason why it may not begin.
func (d *door) enter(now time.Time, id, key string) error {
	d.sweep(now)
	v := d.visitors[key]
	if v == nil {
		v = &visitor{ids: map[string]*visit{}, joins: rate.NewLimiter(rate.Limit(d.joinsPerMinute)/60, d.joinsPerMinute)}
		d.visitors[key] = v
	}
	if earlier := v.ids[id]; earlier != nil {
		earlier.sessions++
		return nil
	}
	v.tried = now
	switch {
	case v.joins.TokensAt(now) < 1:
		return status.Errorf(codes.ResourceExhausted,
			"%s brought %d new node ids within a minute, the most for one caller: let checkers keep their node.id when they come back, or raise limits.max_joins_per_minute", limit.Name(key), d.joinsPerMinute)
	case v.isFull(now, d.maxIDs):
		return status.Errorf(codes.ResourceExhausted,
			"%s has checkers under %d node ids, the most for one caller, those that have just left included: raise limits.max_ids_per_caller, or give checkers certificates of their own", limit.Name(key), d.maxIDs)
	}
	v.joins.AllowN(now, 1)
	v.ids[id] = &visit{sessions: 1}
	return nil
}

// leave ends a session of a caller.
func (d *door) leave(now time.Time, id, key string) {
	v := d.visitors[key]
	if v == nil || v.ids[id] == nil {
		return
	}
	visit := v.ids[id]
	visit.sessions--
	visit.left = now
}

// sweep forgets callers that left long ago.
func (d *door) sweep(now time.Time) {
	if now.Sub(d.swept) < memory {
		return
	}
	d.swept = now
	for key, v := range d.visitors {
		for id, visit := range v.ids {
			if visit.sessions == 0 && now.Sub(visit.left) >= memory {
				delete(v.ids, id)
			}
		}
		if len(v.ids) == 0 && now.Sub(v.tried) >= memory {
			delete(d.visitors, key)
		}
	}
}

// tellPause is the time between two lines about refused checkers.
const tellPause = 10 * time.Second

// turnAway counts a refused checker, and logs one in a while.
func (s *Server) turnAway(id string, caller *peer.Caller, reason error) error {
	s.metrics.turnedAway.Inc()
	if suppressed, ok := s.door.pace.Next(time.Now()); ok {
		s.options.Log.Warn().Str("event", "checker_refused").Str("checker", id).Str("from", caller.Host()).Str("identity", caller.Identity).
			Uint64("others", suppressed).Msg(status.Convert(reason).Message())
	}
	return reason
}

// SetAdmission replaces the rules that admit checkers, and ends sessions that they do not admit.
// No rules admit all.
func (s *Server) SetAdmission(rules []AdmitRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.door.rules = rules
	for id, session := range s.sessions {
		if err := s.door.admits(id, &session.origin.Caller); err != nil && !session.ending {
			session.refused.Store(true)
			session.lifetime.stop(s.turnAway(id, &session.origin.Caller, err))
		}
	}
}
