package coordinator

import (
	"context"
	"time"

	"hdsd/api"
	"hdsd/health"
)

// pastStep is how many endpoints' past is looked up before it is seen whether
// anyone still waits for it.
const pastStep = 512

// everyone gives up to limit endpoints that there are or were, by cluster,
// locality and address, and whether there are more.
func (b *backend) everyone(ctx context.Context, cluster, address string, after *health.Endpoint, limit int) ([]health.Endpoint, bool, error) {
	s := scan{keys: true, query: api.EndpointQuery{Cluster: cluster, Address: address, After: after, Limit: limit}}
	if err := b.scan(ctx, &s); err != nil {
		return nil, false, err
	}
	were, err := b.store.Endpoints(cluster, address, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	all := make([]health.Endpoint, 0, limit)
	for are := s.found; len(are)+len(were) > 0; {
		if len(all) == limit {
			return all, true, nil
		}
		order := 0 // which is next: the present one, the recorded one, or both are one
		switch {
		case len(are) == 0:
			order = 1
		case len(were) == 0:
			order = -1
		default:
			order = are[0].Endpoint.Compare(were[0])
		}
		if order > 0 {
			all, were = append(all, were[0]), were[1:]
			continue
		}
		all, are = append(all, are[0].Endpoint), are[1:]
		if order == 0 {
			were = were[1:]
		}
	}
	return all, s.more, nil
}

// endpointsAsOf gives what was held to be true of endpoints at a time.
func (b *backend) endpointsAsOf(ctx context.Context, q api.EndpointQuery) (found []api.EndpointHealth, more bool, err error) {
	for after := q.After; ; {
		some, further, err := b.everyone(ctx, q.Cluster, q.Address, after, pastStep)
		if err != nil || len(some) == 0 {
			return found, false, err
		}
		held, err := b.store.AsOf(some, q.AsOf)
		if err != nil {
			return nil, false, err
		}
		for i := range some {
			if q.Health != nil && held[i].Status != *q.Health {
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
func (b *backend) Availability(ctx context.Context, q api.AvailabilityQuery) (page api.AvailabilityPage, err error) {
	if q.Cluster != "" {
		if err := b.known(ctx, q.Cluster); err != nil {
			return page, err
		}
	}
	page.Start, page.End = q.Start, q.End
	if page.Start.IsZero() {
		if page.Start, err = b.store.Began(); err != nil {
			return page, err
		}
	}
	if now := time.Now(); page.End.IsZero() || page.End.After(now) {
		page.End = now.UTC()
	}
	endpoints, more, err := b.everyone(ctx, q.Cluster, q.Address, q.After, q.Limit)
	page.More = more
	for err == nil && len(endpoints) > 0 {
		some := endpoints[:min(len(endpoints), pastStep)]
		endpoints = endpoints[len(some):]
		err = b.spent(&page, some)
		if err == nil {
			err = ctx.Err()
		}
	}
	return page, err
}

// spent adds endpoints to a page of availability.
func (b *backend) spent(page *api.AvailabilityPage, endpoints []health.Endpoint) error {
	all, err := b.store.TimeInStatus(endpoints, page.Start, page.End)
	for i, spent := range all {
		row := api.Availability{Endpoint: endpoints[i], In: map[health.Status]time.Duration{}, Transitions: spent.Transitions}
		for status, duration := range spent.In {
			row.In[health.Status(status)] = duration
		}
		page.Found = append(page.Found, row)
	}
	return err
}
