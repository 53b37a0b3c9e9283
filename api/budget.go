package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// maxGroups is how many rows availability is added up to, at most.
const maxGroups = 100_000

// What a row of availability is about.
const (
	byEndpoint = "endpoint"
	byLocality = "locality"
	byZone     = "zone"
	byCluster  = "cluster"
	byChecker  = "checker"
)

// ranking is how availability is added up, and held against an objective.
type ranking struct {
	by  string
	slo float64 // 0: none
}

// rankingOf reads the fields by and slo; nil without them.
func rankingOf(r *hdsdv1.ListAvailabilityRequest) (*ranking, error) {
	if r.GetBy() == "" && r.GetSlo() == "" {
		return nil, nil
	}
	all := []string{byEndpoint, byLocality, byZone, byCluster, byChecker}
	k := &ranking{by: cmp.Or(strings.ToLower(r.GetBy()), byEndpoint)}
	if !slices.Contains(all, k.by) {
		return nil, status.Errorf(codes.InvalidArgument, "by: %q is not one of %s", r.GetBy(), strings.Join(all, ", "))
	}
	if text := r.GetSlo(); text != "" {
		number, percent := strings.CutSuffix(text, "%")
		value, err := strconv.ParseFloat(number, 64)
		if percent {
			value /= 100
		}
		if err != nil || !(value > 0 && value < 1) {
			return nil, status.Errorf(codes.InvalidArgument, "slo: %q is not between 0 and 1: write 0.999 or 99.9%%", text)
		}
		k.slo = value
	}
	return k, nil
}

// rankedPosition is the end of a page of ranked availability. All pages cover the period of
// the first.
type rankedPosition struct {
	Shown      int
	Start, End time.Time
}

// rank answers with availability added up, worst first.
func (s *Service) rank(ctx context.Context, k *ranking, q AvailabilityQuery, token string) (*hdsdv1.ListAvailabilityResponse, error) {
	question := fmt.Sprintf("availability %q %q %v %v %s %v", q.Cluster, q.Address, q.Start, q.End, k.by, k.slo)
	at := rankedPosition{Start: q.Start, End: q.End}
	if token != "" {
		if err := decodeToken(question, token, &at); err != nil {
			return nil, grpcError(err)
		}
	}
	limit := q.Limit
	q.Start, q.End, q.Limit = at.Start, at.End, MaxPageSize
	sums, q, err := s.sums(ctx, k.by, q)
	if err != nil {
		return nil, grpcError(err)
	}
	rows := each(sums.rows(), func(a Availability) *hdsdv1.Availability { return k.message(a) })
	slices.SortStableFunc(rows, worstFirst)
	shown := min(max(at.Shown, 0), len(rows))
	end := min(shown+limit, len(rows))
	answer := &hdsdv1.ListAvailabilityResponse{Availability: rows[shown:end]}
	if end < len(rows) {
		answer.NextPageToken, err = encodeToken(question, rankedPosition{Shown: end, Start: q.Start, End: q.End})
	}
	return answer, grpcError(err)
}

// sums adds up availability. It returns the question with the period that it covers.
func (s *Service) sums(ctx context.Context, by string, q AvailabilityQuery) (*sums, AvailabilityQuery, error) {
	all := newSums(by)
	if by == byChecker {
		period, err := s.sumVotes(ctx, all, q)
		return all, period, err
	}
	for {
		page, err := s.backend.Availability(ctx, q)
		if err != nil {
			return nil, q, err
		}
		for i := range page.Found {
			all.add(&page.Found[i])
		}
		if err := all.check(); err != nil {
			return nil, q, err
		}
		q.Start, q.End = page.Start, page.End
		if !page.More {
			return all, q, nil
		}
		q.After = &page.Found[len(page.Found)-1].Endpoint
	}
}

// sumVotes adds up how long endpoints had each health by the votes of each checker.
func (s *Service) sumVotes(ctx context.Context, to *sums, q AvailabilityQuery) (AvailabilityQuery, error) {
	probe := q
	probe.Limit = 1
	period, err := s.backend.Availability(ctx, probe) // which knows when the history began
	if err != nil {
		return q, err
	}
	q.Start, q.End = period.Start, period.End
	votes := votes{}
	before := EndpointQuery{Cluster: q.Cluster, Address: q.Address, AsOf: q.Start, Limit: MaxPageSize}
	for more := true; more; {
		var found []EndpointHealth
		if found, more, err = s.backend.Endpoints(ctx, before); err != nil {
			return q, err
		}
		for i := range found {
			votes[found[i].Endpoint] = vote{since: q.Start, observations: found[i].Verdict.Observations}
			before.After = &found[i].Endpoint
		}
		if len(votes) > maxGroups {
			return q, errTooManyGroups()
		}
	}
	changes := TransitionQuery{Cluster: q.Cluster, Address: q.Address, Start: q.Start, End: q.End, Limit: MaxPageSize}
	for {
		found, next, err := s.backend.Transitions(ctx, changes)
		if err != nil {
			return q, err
		}
		for i := range found {
			votes.change(to, &found[i])
		}
		if len(votes) > maxGroups || to.check() != nil {
			return q, errTooManyGroups()
		}
		if changes.Token = next; next == "" {
			break
		}
	}
	votes.end(to, q.End)
	return q, nil
}

// message is a row, with what is left of the budget.
func (k *ranking) message(a Availability) *hdsdv1.Availability {
	m := availabilityMessage(a)
	if k.slo != 0 && m.HealthyRatio != nil {
		m.BudgetLeft = new(1 - (1-m.GetHealthyRatio())/(1-k.slo))
	}
	return m
}

// worstFirst orders rows by how healthy they were. Those of which nothing is known are last.
func worstFirst(a, b *hdsdv1.Availability) int {
	if known := a.HealthyRatio != nil; known != (b.HealthyRatio != nil) {
		if known {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.GetHealthyRatio(), b.GetHealthyRatio())
}

func errTooManyGroups() error {
	return status.Errorf(codes.InvalidArgument, "more than %d rows: name a cluster, or add up by cluster or zone", maxGroups)
}

// sums is availability that is added up.
type sums struct {
	by    string
	order []Availability
	at    map[group]int
}

// group is what a row is about.
type group struct {
	endpoint health.Endpoint
	checker  string
}

func newSums(by string) *sums { return &sums{by: by, at: map[group]int{}} }

// rows are in the order in which each came first.
func (s *sums) rows() []Availability { return s.order }

func (s *sums) check() error {
	if len(s.order) > maxGroups {
		return errTooManyGroups()
	}
	return nil
}

// row gives the row of a group.
func (s *sums) row(g group) *Availability {
	i, ok := s.at[g]
	if !ok {
		i = len(s.order)
		s.at[g] = i
		s.order = append(s.order, Availability{Endpoint: g.endpoint, Checker: g.checker})
	}
	return &s.order[i]
}

// add adds the times of an endpoint.
func (s *sums) add(a *Availability) {
	g := group{endpoint: a.Endpoint}
	switch in := a.Endpoint.Locality; s.by {
	case byLocality:
		g.endpoint = health.Endpoint{Locality: in}
	case byZone:
		g.endpoint = health.Endpoint{Locality: health.Locality{Region: in.Region, Zone: in.Zone}}
	case byCluster:
		g.endpoint = health.Endpoint{Cluster: a.Endpoint.Cluster}
	}
	row := s.row(g)
	for is, d := range a.In {
		row.In[is] += d
	}
	row.Transitions += a.Transitions
}

// vote is what the checkers of an endpoint said last, and since when.
type vote struct {
	since        time.Time
	observations []health.Observation
}

type votes map[health.Endpoint]vote

// change ends the votes before a transition, and begins those of it.
func (v votes) change(to *sums, t *health.Transition) {
	before := t.Endpoint
	if t.Moved != nil { // no change: its votes go with it
		before.Locality = *t.Moved
	} else {
		for _, o := range t.Observations {
			if health.IsOpinion(o.Disbelieved) {
				to.row(group{checker: o.Checker}).Transitions++
			}
		}
	}
	v[before].end(to, t.Time)
	delete(v, before)
	v[t.Endpoint] = vote{since: t.Time, observations: t.Observations}
}

// end ends all votes.
func (v votes) end(to *sums, at time.Time) {
	for _, one := range v {
		one.end(to, at)
	}
}

func (v vote) end(to *sums, at time.Time) {
	for _, o := range v.observations {
		if !health.IsOpinion(o.Disbelieved) {
			continue
		}
		if row := to.row(group{checker: o.Checker}); o.Status.Valid() {
			row.In[o.Status] += max(0, at.Sub(v.since))
		}
	}
}
