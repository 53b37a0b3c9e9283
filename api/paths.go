package api

import (
	"context"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// ListPaths implements hdsdv1.QueryServer.
func (s queries) ListPaths(ctx context.Context, r *hdsdv1.ListPathsRequest) (*hdsdv1.ListPathsResponse, error) {
	return answer(ctx, s.Service, r.GetPageSize(), r, s.Service.ListPaths, func(a *hdsdv1.ListPathsResponse) int { return len(a.GetPaths()) })
}

// ListPaths returns the view of each zone's checkers on each other zone's endpoints.
func (s *Service) ListPaths(ctx context.Context, r *hdsdv1.ListPathsRequest) (*hdsdv1.ListPathsResponse, error) {
	const question = "paths"
	limit, after, err := page(r.GetPageSize(), r.GetPageToken(), question)
	if err != nil {
		return nil, err
	}
	paths, err := s.backend.Paths(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	shown, next, err := pageOf(paths, limit, after, question, func(p *Path) string { return p.From + "\x00" + p.To })
	if err != nil {
		return nil, grpcError(err)
	}
	return &hdsdv1.ListPathsResponse{NextPageToken: next, Paths: convertList(shown, func(p Path) *hdsdv1.Path {
		return &hdsdv1.Path{From: p.From, To: p.To, Votes: uint32(p.Votes), Downs: uint32(p.Downs), Contradicted: uint32(p.Contradicted), CutReason: p.CutReason}
	})}, nil
}
