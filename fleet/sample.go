package fleet

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"

	"hdsd/health"
)

// samples are the endpoints that newcomers probe, by checker. The value is true where the vote
// counts: no other checker checks the endpoint.
type samples map[string]map[health.EndpointID]bool

// sample gives a newcomer endpoints to probe.
func (f *Fleet) sample(known *checker, endpoints []health.EndpointID) {
	sample := f.samples[known.ID]
	if sample == nil {
		sample = map[health.EndpointID]bool{}
		f.samples[known.ID] = sample
	}
	var counted []health.EndpointID
	awaits := f.awaitsFormer()
	for _, id := range endpoints {
		_, alone := f.stranded[id]
		alone = alone && !awaits
		if sample[id] = alone; alone {
			counted = append(counted, id)
			f.handovers.end(id, known.ID) // its end would end these votes
		}
	}
	if len(counted) > 0 && !known.newcomer.judged {
		known.newcomer.judged = true
		f.expect(known)
	}
	if len(counted) > 0 {
		f.out.Votes = append(f.out.Votes, VoteChange{Checker: known.ID, Assign: counted})
	}
	f.note(known.ID)
}

// endSample removes a newcomer's sample.
func (f *Fleet) endSample(known *checker) {
	f.yield(known.ID, func(health.EndpointID) bool { return true })
	delete(f.samples, known.ID)
	if known.newcomer.judged {
		known.newcomer.judged = false
		f.out.Votes = append(f.out.Votes, VoteChange{Checker: known.ID, Lost: true})
	}
}

// yieldToSeats ends the votes of a newcomer where others have seats again.
func (f *Fleet) yieldToSeats(checker string) {
	f.yield(checker, func(id health.EndpointID) bool {
		_, alone := f.stranded[id]
		return !alone
	})
}

// yield ends a newcomer's votes on matching endpoints.
func (f *Fleet) yield(checker string, matches func(health.EndpointID) bool) {
	var ended []health.EndpointID
	for id, counts := range f.samples[checker] {
		if counts && matches(id) {
			ended = append(ended, id)
			f.samples[checker][id] = false
		}
	}
	slices.Sort(ended)
	f.out.unassign(checker, ended)
}

// unsample removes a deleted endpoint from all samples. It returns the newcomers whose votes on
// it counted.
func (p *Plan) unsample(id health.EndpointID) (counted []string) {
	for checker, sample := range p.samples {
		counts, ok := sample[id]
		if !ok {
			continue
		}
		delete(sample, id)
		p.note(checker)
		if counts {
			counted = append(counted, checker)
		}
	}
	return counted
}

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sortFor orders checkers, differently for each newcomer.
func sortFor(newcomer string, peers []string) {
	distance := make(map[string]uint64, len(peers))
	for _, peer := range peers {
		h := fnv.New64a()
		_, _ = h.Write([]byte(newcomer + "\x00" + peer)) // never fails
		distance[peer] = h.Sum64()
	}
	slices.SortFunc(peers, func(a, b string) int { return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a, b)) })
}
