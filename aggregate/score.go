package aggregate

import "hdsd/health"

// These bound a voter's run of downs in the score: of one among several voters, or of a single
// one.
const (
	longestRun = 3
	aloneTakes = 4
)

// neededScore returns the score at which the given number of voters takes an endpoint
// down.
func neededScore(voters uint16) int {
	if voters == 1 {
		return aloneTakes
	}
	return int(voters) + 2
}

// runLength returns the number of consecutive rounds in which a vote has said down. It counts
// time, since only the first report after each probe has news. A vote that may be about to
// become up has no run.
func (p *policy) runLength(s *seat, k *checker) int {
	if s.phase == recovering {
		return 1
	}
	elapsed := uint64(uint32(tickOf(k.heardAt)) - s.end)
	return 1 + int(min((elapsed+uint64(p.slack))/uint64(p.round), aloneTakes-1))
}

// beginRun begins a run of downs.
func (in *intake) beginRun(id health.EndpointID, e *endpoint, s *seat) {
	s.end = uint32(tickOf(in.roster.checker(s.checker).heardAt))
	in.trackRun(id, s, in.settings.ofEndpoint(e))
}

// trackRun lists an endpoint to be marked at every report while its run grows.
func (in *intake) trackRun(id health.EndpointID, s *seat, p *policy) {
	if p.Kind == Score && s.phase == warm && s.status.Down() {
		k := in.roster.checker(s.checker)
		k.growing = append(k.growing, id)
	}
}

// growRuns marks the endpoints at which this report may lengthen the checker's run of
// downs.
func (in *intake) growRuns(c uint32) {
	k := in.roster.checker(c)
	if len(k.growing) == 0 {
		return
	}
	list := k.growing
	k.growing = k.growing[:0]
	for _, id := range list {
		e := in.roster.endpoint(id)
		if e == nil {
			continue
		}
		i, p := in.roster.indexOf(e, c), in.settings.ofEndpoint(e)
		if i < 0 || p.Kind != Score {
			continue
		}
		s := &in.roster.seatsOf(e)[i]
		if s.phase != warm || !s.status.Down() {
			continue
		}
		in.roster.mark(id, e)
		if p.runLength(s, k) < aloneTakes {
			k.growing = append(k.growing, id)
		}
	}
}

// restartRuns begins the runs of a checker again after a silence.
func (in *intake) restartRuns(c uint32) {
	for _, v := range in.roster.checker(c).votes {
		if s := in.roster.seat(v.Endpoint, c); s.phase == warm && s.status.Down() {
			in.beginRun(v.Endpoint, in.roster.row(v.Endpoint), s)
		}
	}
}
