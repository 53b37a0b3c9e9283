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

// maxGroups bounds the rows of aggregated availability.
const maxGroups = 100_000

// The subjects of a row of availability.
const (
	byEndpoint = "endpoint"
	byLocality = "locality"
	byZone     = "zone"
	byCluster  = "cluster"
	byChecker  = "checker"
)

// ranking is the dimension of aggregated availability, and its objective.
type ranking struct {
	dimension string
	slo       float64 // 0: none
}

// rankingOf reads the fields by and slo; nil without them.
func rankingOf(r *hdsdv1.ListAvailabilityRequest) (*ranking, error) {
	if r.GetBy() == "" && r.GetSlo() == "" {
		return nil, nil
	}
	dimensions := []string{byEndpoint, byLocality, byZone, byCluster, byChecker}
	k := &ranking{dimension: cmp.Or(strings.ToLower(r.GetBy()), byEndpoint)}
	if !slices.Contains(dimensions, k.dimension) {
		return nil, status.Errorf(codes.InvalidArgument, "by: %q is not one of %s", r.GetBy(), strings.Join(dimensions, ", "))
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

// rank answers with aggregated availability, worst first.
func (s *Service) rank(ctx context.Context, k *ranking, q AvailabilityQuery, token string) (*hdsdv1.ListAvailabilityResponse, error) {
	question := fmt.Sprintf("availability %q %q %v %v %s %v", q.Cluster, q.Address, q.Start, q.End, k.dimension, k.slo)
	position := rankedPosition{Start: q.Start, End: q.End}
	if token != "" {
		if err := decodeToken(question, token, &position); err != nil {
			return nil, grpcError(err)
		}
	}
	limit := q.Limit
	q.Start, q.End, q.Limit = position.Start, position.End, MaxPageSize
	sums, q, err := s.sums(ctx, k.dimension, q)
	if err != nil {
		return nil, grpcError(err)
	}
	rows := convertList(sums.rows(), func(a Availability) *hdsdv1.Availability { return k.message(a) })
	slices.SortStableFunc(rows, worstFirst)
	shown := min(max(position.Shown, 0), len(rows))
	end := min(shown+limit, len(rows))
	answer := &hdsdv1.ListAvailabilityResponse{Availability: rows[shown:end]}
	if end < len(rows) {
		answer.NextPageToken, err = encodeToken(question, rankedPosition{Shown: end, Start: q.Start, End: q.End})
	}
	return answer, grpcError(err)
}

// sums aggregates availability. It returns the query with its actual period.
func (s *Service) sums(ctx context.Context, dimension string, q AvailabilityQuery) (*sums, AvailabilityQuery, error) {
	total := newSums(dimension)
	if dimension == byChecker {
		period, err := s.sumVotes(ctx, total, q)
		return total, period, err
	}
	for {
		page, err := s.backend.Availability(ctx, q)
		if err != nil {
			return nil, q, err
		}
		for i := range page.Found {
			total.add(&page.Found[i])
		}
		if err := total.check(); err != nil {
			return nil, q, err
		}
		q.Start, q.End = page.Start, page.End
		if !page.More {
			return total, q, nil
		}
		q.After = &page.Found[len(page.Found)-1].Endpoint
	}
}

// sumVotes adds up the time of endpoints in each health by the votes of each checker.
func (s *Service) sumVotes(ctx context.Context, total *sums, q AvailabilityQuery) (AvailabilityQuery, error) {
	probe := q
	probe.Limit = 1
	period, err := s.backend.Availability(ctx, probe) // its answer has the start of the history
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
			votes[found[i].Endpoint] = vote{start: q.Start, observations: found[i].Verdict.Observations}
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
			votes.change(total, &found[i])
		}
		if len(votes) > maxGroups || total.check() != nil {
			return q, errTooManyGroups()
		}
		if changes.Token = next; next == "" {
			break
		}
	}
	votes.end(total, q.End)
	return q, nil
}

// message returns a row, with the rest of its budget.
func (k *ranking) message(a Availability) *hdsdv1.Availability {
	m := availabilityMessage(a)
	if k.slo != 0 && m.HealthyRatio != nil {
		m.BudgetLeft = new(1 - (1-m.GetHealthyRatio())/(1-k.slo))
	}
	return m
}

// worstFirst orders rows by healthy ratio. Rows without one are last.
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

// sums is aggregated availability.
type sums struct {
	dimension string
	order     []Availability
	index     map[group]int
}

// group is the subject of a row.
type group struct {
	endpoint health.Endpoint
	checker  string
}

func newSums(dimension string) *sums { return &sums{dimension: dimension, index: map[group]int{}} }

// rows returns the rows in the order of their first use.
func (s *sums) rows() []Availability { return s.order }

func (s *sums) check() error {
	if len(s.order) > maxGroups {
		return errTooManyGroups()
	}
	return nil
}

// row gives the row of a group.
func (s *sums) row(g group) *Availability {
	i, ok := s.index[g]
	if !ok {
		i = len(s.order)
		s.index[g] = i
		s.order = append(s.order, Availability{Endpoint: g.endpoint, Checker: g.checker})
	}
	return &s.order[i]
}

// add adds the times of an endpoint.
func (s *sums) add(a *Availability) {
	g := group{endpoint: a.Endpoint}
	switch locality := a.Endpoint.Locality; s.dimension {
	case byLocality:
		g.endpoint = health.Endpoint{Locality: locality}
	case byZone:
		g.endpoint = health.Endpoint{Locality: health.Locality{Region: locality.Region, Zone: locality.Zone}}
	case byCluster:
		g.endpoint = health.Endpoint{Cluster: a.Endpoint.Cluster}
	}
	row := s.row(g)
	for status, d := range a.Durations {
		row.Durations[status] += d
	}
	row.Transitions += a.Transitions
}

// vote is the latest votes on an endpoint, and their start.
type vote struct {
	start        time.Time
	observations []health.Observation
}

type votes map[health.Endpoint]vote

// change ends the votes before a transition, and begins the votes in it.
func (v votes) change(total *sums, t *health.Transition) {
	before := t.Endpoint
	if t.Moved != nil { // no change: its votes go with it
		before.Locality = *t.Moved
	} else {
		for _, o := range t.Observations {
			if health.IsOpinion(o.Disbelieved) {
				total.row(group{checker: o.Checker}).Transitions++
			}
		}
	}
	v[before].end(total, t.Time)
	delete(v, before)
	v[t.Endpoint] = vote{start: t.Time, observations: t.Observations}
}

// end ends all votes.
func (v votes) end(total *sums, end time.Time) {
	for _, vote := range v {
		vote.end(total, end)
	}
}

func (v vote) end(total *sums, end time.Time) {
	for _, o := range v.observations {
		if !health.IsOpinion(o.Disbelieved) {
			continue
		}
		if row := total.row(group{checker: o.Checker}); o.Status.Valid() {
			row.Durations[o.Status] += max(0, end.Sub(v.start))
		}
	}
}
