package api

import (
	"context"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/envoy"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// Sizes of an overview, in clusters.
const (
	DefaultOverview = 50
	MaxOverview     = 1000
)

// Overview is the worst clusters, by zone.
type Overview struct {
	Clusters []ClusterOverview // worst first
	Further  int               // clusters that are not listed
}

// ClusterOverview is the health of a cluster, by zone.
type ClusterOverview struct {
	Cluster, State  string
	Version         string // as in Cluster
	Endpoints, Down int
	Zones           []ZoneOverview // sorted
}

// ZoneOverview counts the endpoints of a cluster in a zone, "" for none.
type ZoneOverview struct {
	Zone            health.Locality // without sub-zone
	Endpoints, Down int
}

// GetOverview implements hdsdv1.QueryServer.
func (s queries) GetOverview(ctx context.Context, r *hdsdv1.GetOverviewRequest) (*hdsdv1.GetOverviewResponse, error) {
	return answer(ctx, s.Service, r.GetLimit(), r, s.Service.GetOverview, func(a *hdsdv1.GetOverviewResponse) int { return len(a.GetClusters()) })
}

// GetOverview returns the worst clusters, by zone.
func (s *Service) GetOverview(ctx context.Context, r *hdsdv1.GetOverviewRequest) (*hdsdv1.GetOverviewResponse, error) {
	limit := int(r.GetLimit())
	switch {
	case limit < 0 || limit > MaxOverview:
		return nil, status.Errorf(codes.InvalidArgument, "limit: %d is not between 1 and %d (0 or absent: %d)", limit, MaxOverview, DefaultOverview)
	case limit == 0:
		limit = DefaultOverview
	}
	now, err := s.backend.Overview(ctx, limit)
	if err != nil {
		return nil, grpcError(err)
	}
	return overviewMessage(&now), nil
}

func overviewMessage(o *Overview) *hdsdv1.GetOverviewResponse {
	var zones []health.Locality
	for i := range o.Clusters {
		for j := range o.Clusters[i].Zones {
			zones = append(zones, o.Clusters[i].Zones[j].Zone)
		}
	}
	slices.SortFunc(zones, health.Locality.Compare)
	zones = slices.Compact(zones)
	m := &hdsdv1.GetOverviewResponse{
		Further: uint32(o.Further), Zones: convertList(zones, func(l health.Locality) *corev3.Locality { return envoy.LocalityMessage(l) }),
	}
	for i := range o.Clusters {
		c := &o.Clusters[i]
		row := &hdsdv1.GetOverviewResponse_Row{Cluster: c.Cluster, Version: unlessEmpty(c.Version), State: c.State, Endpoints: uint32(c.Endpoints), Down: uint32(c.Down)}
		for _, z := range c.Zones {
			index, _ := slices.BinarySearchFunc(zones, z.Zone, health.Locality.Compare)
			row.Cells = append(row.Cells, &hdsdv1.GetOverviewResponse_Cell{Zone: uint32(index), Endpoints: uint32(z.Endpoints), Down: uint32(z.Down)})
		}
		m.Clusters = append(m.Clusters, row)
	}
	return m
}
