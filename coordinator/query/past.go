package query

import (
	"context"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
)

// pastStep is the number of endpoints looked up in the history between two looks at whether the
// caller still waits.
const pastStep = 512

// allEndpoints returns up to limit endpoints that exist or did, by cluster, locality and
// address, and whether there are more. With moved, a moved endpoint is also there with its
// earlier locality.
func (b *Backend) allEndpoints(ctx context.Context, cluster, address string, moved bool, after *health.Endpoint, limit int) ([]health.Endpoint, bool, error) {
	names, err := b.names(ctx, cluster)
	if err != nil {
		return nil, false, err
	}
	visible := b.visible(ctx)
	s := scan{keysOnly: true, visible: visible, query: api.EndpointQuery{Cluster: cluster, Address: address, After: after, Limit: limit}}
	if err := b.scan(ctx, &s); err != nil {
		return nil, false, err
	}
	recorded, err := b.recorded(ctx, visible, names, address, moved, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	endpoints := make([]health.Endpoint, 0, limit)
	for present := s.keys; len(present)+len(recorded) > 0; {
		if len(endpoints) == limit {
			return endpoints, true, nil
		}
		order := 0 // the next one: present (-1), recorded (1), or both
		switch {
		case len(present) == 0:
			order = 1
		case len(recorded) == 0:
			order = -1
		default:
			order = present[0].Compare(recorded[0])
		}
		if order > 0 {
			endpoints, recorded = append(endpoints, recorded[0]), recorded[1:]
			continue
		}
		endpoints, present = append(endpoints, present[0]), present[1:]
		if order == 0 {
			recorded = recorded[1:]
		}
	}
	return endpoints, s.more, nil
}

// recorded returns up to limit endpoints of the history that the caller may see.
func (b *Backend) recorded(ctx context.Context, visible access.Clusters, clusters []string, address string, moved bool, after *health.Endpoint, limit int) (found []health.Endpoint, err error) {
	for {
		page, err := b.Store.Endpoints(clusters, address, moved, after, limit)
		if err != nil || visible.All() {
			return page, err
		}
		for _, e := range page {
			if visible.Has(e.Cluster) && len(found) < limit {
				found = append(found, e)
			}
		}
		if len(page) < limit || len(found) == limit {
			return found, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		after = &page[len(page)-1]
	}
}

// endpointsAsOf returns the health that hdsd held to be true of endpoints at a time.
func (b *Backend) endpointsAsOf(ctx context.Context, q api.EndpointQuery) (found []api.EndpointHealth, more bool, err error) {
	for after := q.After; ; {
		page, further, err := b.allEndpoints(ctx, q.Cluster, q.Address, true, after, pastStep)
		if err != nil || len(page) == 0 {
			return found, false, err
		}
		held, err := b.Store.AsOf(page, q.AsOf)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			if q.Health != nil && held[i].Status != *q.Health || !q.Filter.Has(page[i].Locality, held[i].Status) {
				continue
			}
			if len(found) == q.Limit {
				return found, true, nil
			}
			found = append(found, api.EndpointHealth{Endpoint: page[i], Version: b.Version(page[i].Cluster), Verdict: held[i]})
		}
		if !further {
			return found, false, nil
		}
		after = &page[len(page)-1]
	}
}

// Availability implements api.Backend.
func (b *Backend) Availability(ctx context.Context, q api.AvailabilityQuery) (page api.AvailabilityPage, err error) {
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
		batch := endpoints[:min(len(endpoints), pastStep)]
		endpoints = endpoints[len(batch):]
		err = b.addTimes(&page, batch)
		if err == nil {
			err = ctx.Err()
		}
	}
	return page, err
}

// addTimes adds to a page the time of endpoints in each health.
func (b *Backend) addTimes(page *api.AvailabilityPage, endpoints []health.Endpoint) error {
	times, err := b.Store.TimeInStatus(endpoints, page.Start, page.End)
	for i, spent := range times {
		page.Found = append(page.Found, api.Availability{Endpoint: endpoints[i], Durations: spent.Durations, Transitions: spent.Transitions})
	}
	return err
}
