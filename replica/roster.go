package replica

import (
	"maps"
	"slices"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/machine"
)

const (
	// maxVotes bounds the votes of a report, which the leader handles at once. The others follow with the next one.
	maxVotes = 1 << 13

	// maxUnfollowed bounds the specifiers of a checker that its reports may still follow.
	maxUnfollowed = 8
)

// roster holds the checkers of this replica, with all that a new leader has to know of them. It keeps the
// latest vote only, so a slow link costs no memory.
type roster struct {
	names    names
	sessions map[string]*session
	number   uint64          // of the latest session
	serial   uint64          // of the latest specifier for a local checker
	dirty    map[string]bool // checkers with something to report
	heard    map[string]bool // checkers that have only been heard
}

// session is a checker of this replica. After its end, it stays until the leader knows of the end.
type session struct {
	health.Checker
	number      uint64
	connected   bool
	isNew       bool // the leader does not know it
	lost, ended bool // since the previous report
	silent      bool
	heard       bool // since the previous report
	votes       map[health.Hash]vote
	changed     []health.Hash // endpoints with a vote to report
	work        []*work       // specifiers that the votes may follow, the latest last
	followed    *work         // nil: none
}

// vote is the latest vote on an endpoint of the latest specifier.
type vote struct {
	status  health.Status
	code    uint16
	known   bool
	changed bool // the endpoint is in session.changed
}

// work is a specifier of a checker.
type work struct {
	term      Term
	serial    uint64               // that the leader gave it
	specifier *specifier.Specifier // with ids and a serial of this process
	endpoints []health.Hash
}

func newRoster(process uint64) *roster {
	return &roster{
		names: names{ids: map[health.Hash]health.EndpointID{}}, number: process,
		sessions: map[string]*session{}, dirty: map[string]bool{}, heard: map[string]bool{},
	}
}

// handle applies an event of a local checker.
func (r *roster) handle(now time.Time, e machine.Event) {
	switch e := e.(type) {
	case machine.Connected:
		r.connect(now, e.Checker)
	case machine.Disconnected:
		if s := r.sessions[e.Checker]; s != nil && s.connected {
			r.end(now, s)
			s.connected, s.lost = false, true
			r.dirty[e.Checker] = true
		}
	case machine.StreamEnded:
		if s := r.sessions[e.Checker]; s != nil {
			s.ended = true
			r.dirty[e.Checker] = true
		}
	case machine.Silenced:
		if s := r.sessions[e.Checker]; s != nil && s.connected {
			s.silent = e.Silent
			r.dirty[e.Checker] = true
		}
	case machine.Followed:
		if s := r.sessions[e.Checker]; s != nil && s.connected {
			r.follow(s, e.Specifier.Serial)
		}
	case machine.Reported:
		if s := r.sessions[e.Checker]; s != nil && s.connected {
			r.report(s, e.Votes)
		}
	}
}

// connect begins a session.
func (r *roster) connect(now time.Time, k health.Checker) {
	r.number++
	next := &session{Checker: k, number: r.number, connected: true, isNew: true, votes: map[health.Hash]vote{}}
	if previous := r.sessions[k.ID]; previous != nil {
		r.end(now, previous)
		next.lost, next.ended = previous.lost, previous.ended
	}
	r.sessions[k.ID] = next
	r.dirty[k.ID] = true
}

// end forgets the votes and specifiers of a session.
func (r *roster) end(now time.Time, s *session) {
	if n := len(s.work); n > 0 {
		r.names.release(now, s.work[n-1].endpoints)
	}
	s.votes, s.changed, s.work, s.followed, s.silent = nil, nil, nil, nil, false
}

// report takes the votes of a report. A vote that is reported again is sent again: the leader may await it.
func (r *roster) report(s *session, votes []health.Vote) {
	s.heard = true
	r.heard[s.ID] = true
	for _, v := range votes {
		if int(v.Endpoint) >= len(r.names.hash) {
			continue
		}
		hash := r.names.hash[v.Endpoint]
		if _, current := s.votes[hash]; !current {
			continue
		}
		r.setVote(s, hash, vote{status: v.Status, code: v.HTTPStatusCode, known: true})
	}
}

// setVote sets a vote and marks it as changed.
func (r *roster) setVote(s *session, hash health.Hash, v vote) {
	if v.changed = true; !s.votes[hash].changed {
		s.changed = append(s.changed, hash)
	}
	s.votes[hash] = v
	r.dirty[s.ID] = true
}

// assign takes a specifier of the leader. It returns the specifier for the checker, or nil if the checker has
// an equal one.
func (r *roster) assign(now time.Time, term Term, a *Assignment) *specifier.Specifier {
	s := r.sessions[a.Checker]
	if s == nil || !s.connected || s.number != a.Session || !isWhole(a) {
		return nil
	}
	r.dirty[s.ID] = true
	next := &work{term: term, serial: a.Serial, endpoints: a.Endpoints}
	var previous *work
	if n := len(s.work); n > 0 {
		previous = s.work[n-1]
	}
	if previous != nil && !a.Specifier.Retell && slices.Equal(previous.endpoints, next.endpoints) && sameContent(previous.specifier, a.Specifier) {
		next.specifier = previous.specifier
		s.work[len(s.work)-1] = next
		if s.followed == previous {
			r.setFollowed(s, next)
		}
		return nil
	}
	local := *a.Specifier
	r.serial++
	local.Serial, local.Order = r.serial, make([]health.EndpointID, len(a.Endpoints))
	votes, keeps := make(map[health.Hash]vote, len(a.Endpoints)), keptVotes(previous, a)
	for i, hash := range a.Endpoints {
		local.Order[i] = r.names.acquire(now, hash)
		votes[hash] = vote{}
		if keeps[i] {
			votes[hash] = s.votes[hash]
		}
	}
	if previous != nil {
		r.names.release(now, previous.endpoints)
	}
	s.votes = votes
	s.changed = slices.DeleteFunc(s.changed, func(hash health.Hash) bool { return !votes[hash].changed })
	next.specifier = &local
	if s.work = append(s.work, next); len(s.work) > maxUnfollowed {
		s.work = slices.Delete(s.work, 0, 1)
	}
	return &local
}

// isWhole reports whether an assignment of another replica has one hash and one address for each entry.
func isWhole(a *Assignment) bool {
	if a.Specifier == nil {
		return false
	}
	entries := 0
	for i := range a.Specifier.Clusters {
		for _, group := range a.Specifier.Clusters[i].Localities {
			entries += max(group.Entries, 0)
		}
	}
	return entries == len(a.Endpoints) && entries == len(a.Specifier.Addresses)
}

// keptVotes reports, by endpoint of a new specifier, whether the latest vote still holds: the check is as before.
// The checker reports the others as soon as it follows the specifier.
func keptVotes(previous *work, a *Assignment) []bool {
	keeps := make([]bool, len(a.Endpoints))
	if previous == nil || a.Specifier.Retell {
		return keeps
	}
	heads := map[string]proto.Message{}
	for i := range previous.specifier.Clusters {
		head := previous.specifier.Clusters[i].Head
		heads[head.GetClusterName()] = head
	}
	entry := 0
	for i := range a.Specifier.Clusters {
		part := &a.Specifier.Clusters[i]
		head, found := heads[part.Head.GetClusterName()]
		same := found && proto.Equal(head, part.Head)
		for _, group := range part.Localities {
			for range group.Entries {
				keeps[entry] = same
				entry++
			}
		}
	}
	return keeps
}

// sameContent reports whether two specifiers with the same endpoints have the same content, so that a checker
// that has one is not sent the other.
func sameContent(a, b *specifier.Specifier) bool {
	return a.Interval == b.Interval && slices.Equal(a.Addresses, b.Addresses) &&
		slices.EqualFunc(a.Clusters, b.Clusters, func(p, q specifier.Part) bool {
			return proto.Equal(p.Head, q.Head) && slices.EqualFunc(p.Localities, q.Localities, func(g, h specifier.Group) bool {
				return g.Entries == h.Entries && proto.Equal(g.Locality, h.Locality)
			})
		}) &&
		maps.EqualFunc(a.Special, b.Special, func(e, f *endpointv3.Endpoint) bool { return proto.Equal(e, f) })
}

// follow notes that a checker follows the specifier with a serial of this process.
func (r *roster) follow(s *session, serial uint64) {
	for i, w := range s.work {
		if w.specifier.Serial == serial {
			s.work = s.work[i:]
			r.setFollowed(s, w)
			return
		}
	}
}

// setFollowed notes that the votes of a checker follow a specifier.
func (r *roster) setFollowed(s *session, w *work) {
	s.followed = w
	r.dirty[s.ID] = true
}

// markAll marks everything as changed, for a full report. Ended sessions are not in it.
func (r *roster) markAll() {
	for id, s := range r.sessions {
		r.mark(s)
		if !s.connected {
			delete(r.sessions, id)
			delete(r.dirty, id)
		}
	}
}

// mark marks everything about a checker as changed.
func (r *roster) mark(s *session) {
	r.dirty[s.ID], s.isNew = true, true
	if !s.connected {
		return
	}
	s.changed = s.changed[:0]
	for hash, v := range s.votes {
		if v.changed = v.known; v.known {
			s.changed = append(s.changed, hash)
		}
		s.votes[hash] = v
	}
	slices.Sort(s.changed)
}

// take returns what has changed since the previous report, and marks it as reported.
func (r *roster) take(term Term) (sessions []Session) {
	for id := range r.heard {
		r.dirty[id] = true
	}
	clear(r.heard)
	room := maxVotes
	for _, id := range slices.Sorted(maps.Keys(r.dirty)) {
		s := r.sessions[id]
		if s == nil {
			delete(r.dirty, id)
			continue
		}
		sessions = append(sessions, r.describe(s, term, &room))
		if len(s.changed) == 0 || !s.follows(term) {
			delete(r.dirty, id)
		}
		if !s.connected {
			delete(r.sessions, id)
		}
	}
	return sessions
}

// follows reports whether a checker follows a specifier of a term. Its votes are for the leader only then: by
// an earlier specifier, it may check otherwise.
func (s *session) follows(term Term) bool { return s.followed != nil && s.followed.term == term }

// describe returns a session for a report that has room for some votes.
func (r *roster) describe(s *session, term Term, room *int) Session {
	d := Session{Checker: s.ID, Number: s.number, Connected: s.connected, Lost: s.lost, Ended: s.ended, Silent: s.silent, Heard: s.heard}
	if s.isNew && s.connected {
		node := s.Checker
		d.Node = &node
	}
	if n := len(s.work); n > 0 && s.work[n-1].term == term {
		d.Assigned = s.work[n-1].serial
	}
	count := 0
	if s.follows(term) {
		d.Followed = s.followed.serial
		count = min(len(s.changed), *room)
	}
	*room -= count
	for _, hash := range s.changed[:count] {
		v := s.votes[hash]
		v.changed = false
		s.votes[hash] = v
		d.Votes = append(d.Votes, Vote{hash, v.status, v.code})
	}
	if s.changed = s.changed[count:]; len(s.changed) == 0 {
		s.changed = nil
	}
	s.isNew, s.lost, s.ended, s.heard = false, false, false, false
	return d
}
