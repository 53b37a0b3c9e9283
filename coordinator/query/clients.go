package query

import (
	"cmp"
	"context"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"hdsd/api"
	"hdsd/hds"
	"hdsd/publish"
	"hdsd/source/xds"
)

// Clients implements api.Backend. It lists subscribers and checkers, each once for
// each type, however many streams it has, and hdsd itself as a client of management
// servers.
func (b *Backend) Clients(ctx context.Context, cluster string) ([]api.Client, error) {
	if cluster != "" {
		return b.holders(ctx, cluster)
	}
	clients := append(subscribers(b.streams(nil)), b.upstreamClients()...)
	checkers, err := b.Checkers(ctx)
	if err != nil {
		return nil, err
	}
	for i := range checkers {
		if lost := checkers[i].Lost; lost != nil && lost.Gone {
			continue
		}
		clients = append(clients, checkerClient(&checkers[i]))
	}
	return clients, nil
}

// holders lists the data planes that asked for a cluster or its assignment.
func (b *Backend) holders(ctx context.Context, cluster string) ([]api.Client, error) {
	if _, err := b.names(ctx, cluster); err != nil {
		return nil, err
	}
	outside, service := cluster, cluster
	err := b.Core.Ask(ctx, func(s State) {
		if k := s.Cluster(cluster); k != nil {
			outside, service = k.Source.Outside(), k.Source.Service()
		}
	})
	if err != nil {
		return nil, err
	}
	return subscribers(b.streams(func(name string) bool { return name == outside || name == service })), nil
}

// streams lists the streams and the polls of data planes that asked for wanted names; nil: for
// any.
func (b *Backend) streams(wanted func(name string) bool) []publish.Client {
	streams := b.EDS.Clients(wanted)
	if b.Relayed != nil {
		streams = append(streams, b.Relayed(wanted)...)
	}
	return streams
}

// subscribers joins the streams and the polls of each client.
func subscribers(streams []publish.Client) []api.Client {
	type identity struct{ id, typeURL string }
	index := map[identity]int{}
	var clients []api.Client
	for _, s := range streams {
		i, ok := index[identity{s.ID, s.TypeURL}]
		if !ok {
			i = len(clients)
			index[identity{s.ID, s.TypeURL}] = i
			clients = append(clients, api.Client{ID: s.ID, Kind: api.KindSubscriber, TypeURL: s.TypeURL, Connected: true})
		}
		c := &clients[i]
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
	return clients
}

// checkerClient shows a checker as a client of its one resource, the specifier,
// which it acknowledges by reporting.
func checkerClient(k *api.Checker) api.Client {
	c := api.Client{
		ID: k.ID, Kind: api.KindChecker, Connected: k.Connected, TypeURL: specifierType, Resources: 1, LastAck: k.LastReport, Replica: k.Replica,
	}
	if k.Specifier == hds.Synced {
		c.Synced = 1
	} else {
		c.Stale = 1
	}
	return c
}

// upstreamClients lists hdsd as a client of each management server.
func (b *Backend) upstreamClients() (clients []api.Client) {
	b.Feed.Upstreams(func(name string, known xds.Status) {
		for i := range known.Types {
			t := &known.Types[i]
			c := api.Client{
				ID: name, Kind: api.KindUpstream, TypeURL: t.TypeURL, Connected: t.Connected,
				Resources: len(t.Resources), LastAck: t.LastAck, LastError: lastError(t),
			}
			for j := range t.Resources {
				switch state := t.Resources[j].ClientStatus; {
				case state == adminv3.ClientResourceStatus_NACKED:
					c.Error++
				case t.Connected && (state == adminv3.ClientResourceStatus_ACKED || state == adminv3.ClientResourceStatus_DOES_NOT_EXIST):
					c.Synced++
				default:
					c.Stale++
				}
			}
			clients = append(clients, c)
		}
	})
	return clients
}

// lastError describes the fault of a management server: hdsd cannot reach it, or refuses its
// response.
func lastError(t *xds.TypeStatus) string {
	if t.Connected {
		return cmp.Or(t.Rejected, t.LastError)
	}
	return cmp.Or(t.LastError, t.Rejected)
}
