package coordinator

import (
	"context"

	"hdsd/api"
	"hdsd/eds"
	"hdsd/hds"
)

// Clients implements api.Backend: subscribers and checkers, each with one type
// once, however many streams it has, and upstreams, of which hdsd is the client.
func (b *backend) Clients(ctx context.Context) ([]api.Client, error) {
	all := append(subscribers(b.eds.Clients()), b.upstreams.clients()...)
	checkers, err := b.Checkers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range checkers {
		all = append(all, checkerClient(&checkers[i]))
	}
	return all, nil
}

// subscribers puts the streams and the polls of a client together.
func subscribers(streams []eds.Client) []api.Client {
	type identity struct{ id, typeURL string }
	at := map[identity]int{}
	var all []api.Client
	for _, s := range streams {
		i, ok := at[identity{s.ID, s.TypeURL}]
		if !ok {
			i = len(all)
			at[identity{s.ID, s.TypeURL}] = i
			all = append(all, api.Client{ID: s.ID, Kind: api.KindSubscriber, TypeURL: s.TypeURL, Connected: true})
		}
		c := &all[i]
		c.Resources += s.Resources
		c.Synced += s.Synced
		c.Stale += s.Stale
		c.Error += s.Error
		c.Unasked += s.Unasked
		if s.LastAck.After(c.LastAck) {
			c.LastAck = s.LastAck
		}
		if s.LastError != "" {
			c.LastError = s.LastError
		}
		if s.Poll != nil && (c.Poll == nil || s.Poll.Time.After(c.Poll.Time)) {
			c.Poll = (*api.Poll)(s.Poll)
		}
	}
	return all
}

// checkerClient is a checker as a client of its one resource, the specifier.
// It acknowledges by reporting.
func checkerClient(k *api.Checker) api.Client {
	c := api.Client{
		ID: k.ID, Kind: api.KindChecker, Connected: k.Connected, TypeURL: specifierType, Resources: 1, LastAck: k.LastReport,
	}
	if k.Specifier == hds.Synced {
		c.Synced = 1
	} else {
		c.Stale = 1
	}
	return c
}
