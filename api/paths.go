package api

import (
	"context"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// ListPaths implements hdsdv1.QueryServer.
func (s queries) ListPaths(ctx context.Context, r *hdsdv1.ListPathsRequest) (*hdsdv1.ListPathsResponse, error) {
	return answer(ctx, s.Service, 0, r, s.Service.ListPaths, func(a *hdsdv1.ListPathsResponse) int { return len(a.GetPaths()) })
}

// ListPaths returns the paths between zones.
func (s *Service) ListPaths(ctx context.Context, _ *hdsdv1.ListPathsRequest) (*hdsdv1.ListPathsResponse, error) {
	paths, err := s.backend.Paths(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	return &hdsdv1.ListPathsResponse{Paths: each(paths, func(p Path) *hdsdv1.Path {
		return &hdsdv1.Path{From: p.From, To: p.To, Votes: uint32(p.Votes), Downs: uint32(p.Downs), Contradicted: uint32(p.Contradicted), CutReason: p.CutReason}
	})}, nil
}
