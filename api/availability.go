package api

import (
	"context"
	"fmt"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// availabilityPosition is the end of a page of availability. All pages cover the period
// of the first, whenever they are requested.
type availabilityPosition struct {
	After      health.Endpoint
	Start, End time.Time
}

// ListAvailability returns the time of endpoints in each health.
func (s *Service) ListAvailability(ctx context.Context, r *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := AvailabilityQuery{Cluster: r.GetCluster(), Address: r.GetAddress(), Limit: limit}
	if query.Start, query.End, err = period(r); err != nil {
		return nil, err
	}
	if ranked, err := rankingOf(r); err != nil || ranked != nil {
		if err != nil {
			return nil, err
		}
		return s.rank(ctx, ranked, query, r.GetPageToken())
	}
	question := fmt.Sprintf("availability %q %q %v %v", query.Cluster, query.Address, query.Start, query.End)
	if r.GetPageToken() != "" {
		var position availabilityPosition
		if err := decodeToken(question, r.GetPageToken(), &position); err != nil {
			return nil, grpcError(err)
		}
		query.After, query.Start, query.End = &position.After, position.Start, position.End
	}
	page, err := s.backend.Availability(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.ListAvailabilityResponse{Availability: convertList(page.Found, availabilityMessage)}
	if page.More {
		last := page.Found[len(page.Found)-1].Endpoint
		answer.NextPageToken, err = encodeToken(question, availabilityPosition{last, page.Start, page.End})
	}
	return answer, grpcError(err)
}
