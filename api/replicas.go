package api

import (
	"context"
	"math"
	"time"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// Replica is one coordinator of several that share what they decide.
type Replica struct {
	ID                   string
	Self                 bool // it answers the question
	Leader               bool
	Connected            bool
	Address, Version     string
	Checkers, DataPlanes int           // connected to it
	Position             uint64        // of the latest published entry of the log
	Lag                  time.Duration // how far it is behind the log
	Since                time.Time     // zero if not known
}

// ListReplicas implements hdsdv1.QueryServer.
func (s queries) ListReplicas(ctx context.Context, r *hdsdv1.ListReplicasRequest) (*hdsdv1.ListReplicasResponse, error) {
	return answer(ctx, s.Service, 0, r, func(ctx context.Context, _ *hdsdv1.ListReplicasRequest) (*hdsdv1.ListReplicasResponse, error) {
		replicas, epoch, err := s.backend.Replicas(ctx)
		if err != nil {
			return nil, grpcError(err)
		}
		return &hdsdv1.ListReplicasResponse{Replicas: convertList(replicas, replicaMessage), Epoch: epoch}, nil
	}, func(a *hdsdv1.ListReplicasResponse) int { return len(a.GetReplicas()) })
}

func replicaMessage(r Replica) *hdsdv1.Replica {
	return &hdsdv1.Replica{
		Id: r.ID, Self: r.Self, Leader: r.Leader, Connected: r.Connected, Address: r.Address, Version: r.Version,
		Checkers: uint32(r.Checkers), DataPlanes: uint32(r.DataPlanes),
		Position: r.Position, LagMillis: uint32(min(max(r.Lag.Milliseconds(), 0), math.MaxUint32)), Since: timeMessage(r.Since),
	}
}
