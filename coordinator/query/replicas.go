package query

import (
	"context"

	"hdsd/api"
)

// Replicas implements api.Backend. Of this replica, it counts the streams itself.
func (b *Backend) Replicas(ctx context.Context) (replicas []api.Replica, epoch int64, err error) {
	if b.Options.Replicas == nil {
		p := b.Process()
		replicas = []api.Replica{{ID: b.ID, Self: true, Leader: true, Connected: true, Version: p.Version, Since: p.Started}}
	} else if replicas, epoch, err = b.Options.Replicas(ctx); err != nil {
		return nil, 0, err
	}
	for i := range replicas {
		if r := &replicas[i]; r.Self {
			r.Checkers, r.DataPlanes = len(b.HDS.Checkers()), dataPlanes(b)
		}
	}
	return replicas, epoch, nil
}

// dataPlanes counts the connected data planes.
func dataPlanes(b *Backend) int {
	if b.EDS == nil {
		return 0
	}
	ids := map[string]bool{}
	for _, s := range b.streams(nil) {
		ids[s.ID] = true
	}
	return len(ids)
}
