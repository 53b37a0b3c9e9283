package api

import (
	"context"
	"time"

	"hdsd/access"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/caller"
)

// MaxAttention is how many things that need attention an answer has.
const MaxAttention = 100

// Status says how hdsd and what it checks are.
type Status struct {
	Version   string
	NotReady  string // why; empty if it is ready
	Shadow    bool
	Frozen    bool
	Clusters  ClusterCounts
	Endpoints EndpointCounts
	Checkers  CheckerCounts
	Attention []Attention // all, worst first

	Started time.Time
	Zones   []CheckersOfZone // by name
	Sources []SourceState    // nil for callers that may not see all clusters
	Planes  PlaneCounts      // zero for these
	History HistoryState
}

// CheckersOfZone counts the checkers of a zone, "region/zone".
type CheckersOfZone struct {
	Zone                      string
	Connected, Troubled, Lost int
}

// SourceState is how one source is.
type SourceState struct {
	Name                string
	Clusters, Endpoints int
	Problem             string // empty if nothing is wrong
	Broken              bool   // hdsd refuses something of it, as the Problem says
}

// PlaneCounts counts data planes.
type PlaneCounts struct{ Synced, Behind, Refusing int }

// HistoryState is how the recorded history is.
type HistoryState struct {
	Oldest  time.Time // zero if it is not known
	Bytes   int64
	Pending int // changes that are not on the disk yet
}

// ClusterCounts counts clusters by how much of each is down.
type ClusterCounts struct{ OK, SomeDown, HalfDown, AllDown, Unobserved, NoneHealthy, Unchecked int }

// EndpointCounts counts endpoints.
type EndpointCounts struct {
	HealthCounts

	Held   int
	Voters [4]int // by the number of believed votes, 3 or more in the last
}

// CheckerCounts counts checkers.
type CheckerCounts struct{ Connected, Doubted, Silent, Blind, Lost int }

// Attention is something that needs attention.
type Attention struct {
	Kind, Cluster, Zone, Text, Command string
	Since                              time.Time // zero if not known
}

// GetStatus implements hdsdv1.QueryServer.
func (s queries) GetStatus(ctx context.Context, r *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	return answer(ctx, s.Service, 0, r, s.Service.GetStatus, func(*hdsdv1.GetStatusResponse) int { return 1 })
}

// GetStatus says how hdsd and what it checks are.
func (s *Service) GetStatus(ctx context.Context, _ *hdsdv1.GetStatusRequest) (*hdsdv1.GetStatusResponse, error) {
	now, err := s.backend.Status(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	m := statusResponse(&now)
	m.Caller = callerOf(ctx)
	return m, nil
}

// callerOf says who asks.
func callerOf(ctx context.Context) *hdsdv1.Caller {
	may := access.FromContext(ctx)
	m := &hdsdv1.Caller{Identity: caller.FromContext(ctx).Identity, Operates: may.Over(access.Operator).Globs()}
	for role := access.Checker; role <= access.Admin; role++ {
		if len(may.Over(role).Globs()) > 0 {
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
		Attention: each(s.Attention[:min(len(s.Attention), MaxAttention)], attentionMessage),
		Further:   uint32(max(len(s.Attention)-MaxAttention, 0)),
	}
	m.Started = timeMessage(s.Started)
	m.Sources = each(s.Sources, func(f SourceState) *hdsdv1.GetStatusResponse_SourceState {
		return &hdsdv1.GetStatusResponse_SourceState{Name: f.Name, Clusters: uint32(f.Clusters), Endpoints: uint32(f.Endpoints), Problem: f.Problem, Broken: f.Broken}
	})
	m.DataPlanes = &hdsdv1.GetStatusResponse_DataPlanes{Synced: uint32(s.Planes.Synced), Behind: uint32(s.Planes.Behind), Refusing: uint32(s.Planes.Refusing)}
	m.CheckersByZone = each(s.Zones, func(z CheckersOfZone) *hdsdv1.GetStatusResponse_CheckersOfZone {
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
	return &hdsdv1.Attention{Kind: a.Kind, Cluster: a.Cluster, Zone: a.Zone, Text: a.Text, Since: timeMessage(a.Since), Command: a.Command}
}
