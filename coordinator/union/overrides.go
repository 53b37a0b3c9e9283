package union

import (
	"context"

	"hdsd/api"
	"hdsd/health"
)

// PreviewOverride returns the effect that an override would have. The leader knows the clusters of all replicas.
func (b *Backend) PreviewOverride(ctx context.Context, o api.Override) (api.Preview, error) {
	if found, ok, err := askLeader[api.Preview](ctx, b, question{Kind: kindPreview, Override: &o}); ok {
		return found, err
	}
	return b.Preview(ctx, o)
}

// Overrides returns the overrides that this replica has, with the number of endpoints that each has at the leader.
func (b *Backend) Overrides(ctx context.Context) ([]api.Override, error) {
	own, err := b.OwnOverrides(ctx)
	if err != nil || len(own) == 0 {
		return own, err
	}
	all, ok, err := askLeader[[]api.Override](ctx, b, question{Kind: kindOverrides})
	if !ok || err != nil {
		return own, ctx.Err()
	}
	type key struct {
		scope   health.Endpoint
		version string
	}
	endpoints := make(map[key]int, len(all))
	for i := range all {
		endpoints[key{all[i].Scope, all[i].Version}] = all[i].Endpoints
	}
	for i := range own {
		if n, ok := endpoints[key{own[i].Scope, own[i].Version}]; ok {
			own[i].Endpoints = n
		}
	}
	return own, nil
}
