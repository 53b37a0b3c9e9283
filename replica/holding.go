package replica

import (
	"maps"
	"slices"
	"time"

	"hdsd/envoy/specifier"
	"hdsd/health"
)

// holding is a checker as the leader knows it: the replica that has it, and its specifiers.
type holding struct {
	replica string
	session uint64 // 0: the leader has asked for its state
	silent  bool
	heard   time.Time            // when it last reported
	rivals  map[string]time.Time // other replicas with a session of the same id, and since when

	latest     *Assignment                     // nil: none in this session
	unfollowed map[uint64]*specifier.Specifier // sent or to be sent, by serial
	followed   uint64                          // serial
	begun      map[health.Hash]uint64          // serial with which the votes on an endpoint begin, until the checker follows it
	gate       uint64                          // the specifier waits until so many steps are in the log
}

// forgetSession forgets what belongs to a session.
func (h *holding) forgetSession() {
	h.silent, h.latest, h.followed, h.gate = false, nil, 0, 0
	h.unfollowed, h.begun = map[uint64]*specifier.Specifier{}, map[health.Hash]uint64{}
}

// prepare makes the assignment of a specifier. The caller gives the hashes of its endpoints.
//
// An endpoint that has left the clusters and come back has another id in the machine and the same hash. The
// checker reports it again then, and earlier votes on it do not count.
func (h *holding) prepare(s *specifier.Specifier, hashes []health.Hash, checker string) {
	a := &Assignment{Checker: checker, Session: h.session, Serial: s.Serial, Specifier: s, Endpoints: hashes}
	if previous := h.latest; previous != nil {
		ids := make(map[health.Hash]health.EndpointID, len(previous.Endpoints))
		for i, hash := range previous.Endpoints {
			ids[hash] = previous.Specifier.Order[i]
		}
		for i, hash := range hashes {
			id, known := ids[hash]
			if known && id == s.Order[i] {
				continue
			}
			if h.begun[hash] = s.Serial; known && !a.Specifier.Retell {
				again := *s
				again.Retell = true
				a.Specifier = &again
			}
		}
	}
	h.latest = a
	h.unfollowed[s.Serial] = s
	if len(h.unfollowed) > maxUnfollowed {
		delete(h.unfollowed, slices.Min(slices.Collect(maps.Keys(h.unfollowed))))
	}
}

// follow notes that the checker follows a specifier, and returns the latter; nil if that is not new.
func (h *holding) follow(serial uint64) *specifier.Specifier {
	s := h.unfollowed[serial]
	if s == nil || serial <= h.followed {
		return nil
	}
	h.followed = serial
	for earlier := range h.unfollowed {
		if earlier <= serial {
			delete(h.unfollowed, earlier)
		}
	}
	for hash, begins := range h.begun {
		if begins <= serial {
			delete(h.begun, hash)
		}
	}
	return s
}
