package hds

import "hdsd/hds/specifier"

// FollowSink is a Sink that also wants to know which specifier a checker has
// taken.
type FollowSink interface {
	Sink

	// Follows tells that a report has listed exactly what is in a specifier, for
	// the first time, before Reported is called for that report. To a checker
	// that speaks v2, s has what was sent of the one that was assigned.
	Follows(id string, s *specifier.Specifier)
}

func (s *Server) tellFollows(id string, p *plan) {
	if sink, ok := s.sink.(FollowSink); ok && p != nil {
		sink.Follows(id, p.spec)
	}
}
