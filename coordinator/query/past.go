package query

import (
	"context"
	"time"

	"hdsd/access"
	"hdsd/api"
	"hdsd/health"
)

// pastStep is how many endpoints are looked up in the history between two looks at
// whether the caller still waits.
const pastStep = 512

// allEndpoints gives up to limit endpoints that exist or did, by cluster, locality
// and address, and whether there are more. With moved, one that was in another locality before is
// there too as what it was then.
func (b *Backend) allEndpoints(ctx context.Context, cluster, address string, moved bool, after *health.Endpoint, limit int) ([]health.Endpoint, bool, error) {
	may := b.visible(ctx)
	s := scan{keysOnly: true, may: may, query: api.EndpointQuery{Cluster: cluster, Address: address, After: after, Limit: limit}}
	if err := b.scan(ctx, &s); err != nil {
		return nil, false, err
	}
	recorded, err := b.recorded(ctx, may, cluster, address, moved, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	all := make([]health.Endpoint, 0, limit)
	for present := s.keys; len(present)+len(recorded) > 0; {
		if len(all) == limit {
			return all, true, nil
		}
		order := 0 // which is next: the present one (-1), the recorded one (1), or both are the same
		switch {
		case len(present) == 0:
			order = 1
		case len(recorded) == 0:
			order = -1
		default:
			order = present[0].Compare(recorded[0])
		}
		if order > 0 {
			all, recorded = append(all, recorded[0]), recorded[1:]
			continue
		}
		all, present = append(all, present[0]), present[1:]
		if order == 0 {
			recorded = recorded[1:]
		}
	}
	return all, s.more, nil
}

// recorded gives up to limit endpoints of the history that the caller may see.
func (b *Backend) recorded(ctx context.Context, may access.Clusters, cluster, address string, moved bool, after *health.Endpoint, limit int) (found []health.Endpoint, err error) {
	for {
		some, err := b.Store.Endpoints(cluster, address, moved, after, limit)
		if err != nil || may.All() {
			return some, err
		}
		for _, e := range some {
			if may.Has(e.Cluster) && len(found) < limit {
				found = append(found, e)
			}
		}
		if len(some) < limit || len(found) == limit {
			return found, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		after = &some[len(some)-1]
	}
}

// endpointsAsOf gives what hdsd held to be true of endpoints at a time.
func (b *Backend) endpointsAsOf(ctx context.Context, q api.EndpointQuery) (found []api.EndpointHealth, more bool, err error) {
	for after := q.After; ; {
		some, further, err := b.allEndpoints(ctx, q.Cluster, q.Address, true, after, pastStep)
		if err != nil || len(some) == 0 {
			return found, false, err
		}
		held, err := b.Store.AsOf(some, q.AsOf)
		if err != nil {
			return nil, false, err
		}
		for i := range some {
			if q.Health != nil && held[i].Status != *q.Health || !q.Filter.Has(some[i].Locality, held[i].Status) {
				continue
			}
			if len(found) == q.Limit {
				return found, true, nil
			}
			found = append(found, api.EndpointHealth{Endpoint: some[i], Verdict: held[i]})
		}
		if !further {
			return found, false, nil
		}
		after = &some[len(some)-1]
	}
}

// Availability implements api.Backend.
func (b *Backend) Availability(ctx context.Context, q api.AvailabilityQuery) (page api.AvailabilityPage, err error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return page, err
		}
	}
	page.Start, page.End = q.Start, q.End
	if page.Start.IsZero() {
		if page.Start, err = b.Store.Began(); err != nil {
			return page, err
		}
	}
	if now := time.Now(); page.End.IsZero() || page.End.After(now) {
		page.End = now.UTC()
	}
	endpoints, more, err := b.allEndpoints(ctx, q.Cluster, q.Address, false, q.After, q.Limit)
	page.More, page.Found = more, make([]api.Availability, 0, len(endpoints))
	for err == nil && len(endpoints) > 0 {
		some := endpoints[:min(len(endpoints), pastStep)]
		endpoints = endpoints[len(some):]
		err = b.addTimes(&page, some)
		if err == nil {
			err = ctx.Err()
		}
	}
	return page, err
}

// addTimes adds to a page how long endpoints had each health.
func (b *Backend) addTimes(page *api.AvailabilityPage, endpoints []health.Endpoint) error {
	all, err := b.Store.TimeInStatus(endpoints, page.Start, page.End)
	for i, spent := range all {
		page.Found = append(page.Found, api.Availability{Endpoint: endpoints[i], In: spent.In, Transitions: spent.Transitions})
	}
	return err
}
