package api

import (
	"context"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/peer"
	"hdsd/peer/access"
)

// MaxAttention bounds the list of things that need attention in an answer.
const MaxAttention = 100

// Status is the state of hdsd and of everything it checks.
type Status struct {
	Version   string
	NotReady  string // the reason; empty if it is ready
	Shadow    bool
	Frozen    bool
	Clusters  ClusterCounts
	Endpoints EndpointCounts
	Checkers  CheckerCounts
	Attention []Attention // worst first
	Further   int         // things that need attention and are not listed

	Started time.Time
	Zones   []CheckersOfZone // by name
	Sources []SourceState    // nil for callers that may not see all clusters
	Planes  PlaneCounts      // zero for these callers
	History HistoryState
}

// CheckersOfZone counts the checkers of a zone, "region/zone".
type CheckersOfZone struct {
	Zone                      string
	Connected, Troubled, Lost int
}

// SourceState is the state of one source.
type SourceState struct {
	Name                string
	Clusters, Endpoints int
	Problem             string // empty if nothing is wrong
	Broken              bool   // hdsd refuses a part of it, described by Problem
}

// PlaneCounts counts data planes.
type PlaneCounts struct{ Synced, Behind, Refusing int }

// HistoryState is the state of the recorded history.
type HistoryState struct {
	Oldest  time.Time // zero if it is not known
	Bytes   int64
	Pending int // changes not yet on disk
}

// ClusterCounts counts clusters by their share of endpoints that are down.
type ClusterCounts struct{ OK, SomeDown, HalfDown, AllDown, Unobserved, NoneHealthy, Unchecked int }

// EndpointCounts counts endpoints.
type EndpointCounts struct {
	HealthCounts

	Held   int
	Voters [4]int // by the number of believed votes, 3 or more in the last
}

// CheckerCounts counts checkers.
type CheckerCounts struct{ Connected, Doubted, Silent, Blind, Lost int }

// Attention is one thing that needs attention.
type Attention struct {
	Kind, Cluster, Zone, Text, Command string
	Version                            string    // of the Cluster, as Cluster has it
	Since                              time.Time // zero if not known
}

// GetStatus implements hdsdv1.QueryServer.
func (s queries) GetStatus(ctx context.Context, r *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	return answer(ctx, s.Service, 0, r, s.Service.GetStatus, func(*hdsdv1.GetStatusResponse) int { return 1 })
}

// GetStatus returns the state of hdsd and of everything it checks.
func (s *Service) GetStatus(ctx context.Context, _ *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	now, err := s.backend.Status(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	m := statusResponse(&now)
	m.Caller = callerOf(ctx)
	return m, nil
}

// callerOf returns the caller.
func callerOf(ctx context.Context) *hdsdv1.Caller {
	permit := access.FromContext(ctx)
	m := &hdsdv1.Caller{Identity: peer.FromContext(ctx).Identity, Operates: permit.Over(access.Operator).Globs()}
	for role := access.Checker; role <= access.Admin; role++ {
		if len(permit.Over(role).Globs()) > 0 {
			m.Roles = append(m.Roles, role.String())
		}
	}
	return m
}

func statusResponse(s *Status) *hdsdv1.GetStatusResponse {
	m := &hdsdv1.GetStatusResponse{
		Version: s.Version, Ready: s.NotReady == "", NotReadyReason: s.NotReady, Frozen: s.Frozen,
		Clusters: &hdsdv1.GetStatusResponse_Clusters{
			Ok: uint32(s.Clusters.OK), SomeDown: uint32(s.Clusters.SomeDown), HalfDown: uint32(s.Clusters.HalfDown),
			AllDown: uint32(s.Clusters.AllDown), Unobserved: uint32(s.Clusters.Unobserved), NoneHealthy: uint32(s.Clusters.NoneHealthy), Unchecked: uint32(s.Clusters.Unchecked),
		},
		Endpoints: &hdsdv1.GetStatusResponse_Endpoints{
			Healthy: uint32(s.Endpoints.Healthy), Unhealthy: uint32(s.Endpoints.Unhealthy), Timeout: uint32(s.Endpoints.Timeout),
			Degraded: uint32(s.Endpoints.Degraded), Draining: uint32(s.Endpoints.Draining), Unknown: uint32(s.Endpoints.Unknown),
			Held: uint32(s.Endpoints.Held),
		},
		Checkers: &hdsdv1.GetStatusResponse_Checkers{
			Connected: uint32(s.Checkers.Connected), Doubted: uint32(s.Checkers.Doubted), Silent: uint32(s.Checkers.Silent),
			Blind: uint32(s.Checkers.Blind), Lost: uint32(s.Checkers.Lost),
		},
		Attention: convertList(s.Attention[:min(len(s.Attention), MaxAttention)], attentionMessage),
		Further:   uint32(max(len(s.Attention)-MaxAttention, 0) + s.Further),
	}
	m.Started = timeMessage(s.Started)
	m.Sources = convertList(s.Sources, func(f SourceState) *hdsdv1.GetStatusResponse_SourceState {
		return &hdsdv1.GetStatusResponse_SourceState{Name: f.Name, Clusters: uint32(f.Clusters), Endpoints: uint32(f.Endpoints), Problem: f.Problem, Broken: f.Broken}
	})
	m.DataPlanes = &hdsdv1.GetStatusResponse_DataPlanes{Synced: uint32(s.Planes.Synced), Behind: uint32(s.Planes.Behind), Refusing: uint32(s.Planes.Refusing)}
	m.CheckersByZone = convertList(s.Zones, func(z CheckersOfZone) *hdsdv1.GetStatusResponse_CheckersOfZone {
		return &hdsdv1.GetStatusResponse_CheckersOfZone{Zone: z.Zone, Connected: uint32(z.Connected), Troubled: uint32(z.Troubled), Lost: uint32(z.Lost)}
	})
	m.History = &hdsdv1.GetStatusResponse_History{Oldest: timeMessage(s.History.Oldest), Bytes: uint64(s.History.Bytes), Pending: uint64(s.History.Pending)}
	for _, n := range s.Endpoints.Voters {
		m.Endpoints.Voters = append(m.Endpoints.Voters, uint32(n))
	}
	if s.Shadow {
		m.Mode = hdsdv1.Cluster_SHADOW
	}
	return m
}

func attentionMessage(a Attention) *hdsdv1.Attention {
	return &hdsdv1.Attention{Kind: a.Kind, Cluster: a.Cluster, Version: unlessEmpty(a.Version), Zone: a.Zone, Text: a.Text, Since: timeMessage(a.Since), Command: a.Command}
}
