package union

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/attention"
)

// Clients implements api.Backend. It lists the clients of all replicas that answer.
func (b *Backend) Clients(ctx context.Context, cluster string) ([]api.Client, error) {
	own, err := b.Backend.Clients(ctx, cluster)
	if err != nil && !isFinal(err) {
		return nil, err
	}
	all, asking := askAll[[]api.Client](ctx, b, question{Kind: kindClients, Cluster: cluster})
	if asking != nil {
		return nil, asking
	}
	lists := []given[[]api.Client]{{replica: b.id, value: own, err: err}}
	if leader, ok := b.peers.Leader(); ok { // it knows most of a checker
		if i := slices.IndexFunc(all, func(g given[[]api.Client]) bool { return g.replica == leader }); i > 0 {
			all[0], all[i] = all[i], all[0]
		}
		lists = append(all, lists...)
	} else {
		lists = append(lists, all...)
	}
	type key struct{ id, kind, typeURL, replica string }
	seen, known := map[key]bool{}, false
	var clients []api.Client
	for _, list := range lists {
		known = known || list.err == nil
		for _, c := range list.value {
			c.Replica = cmp.Or(c.Replica, list.replica)
			if k := (key{c.ID, c.Kind, c.TypeURL, c.Replica}); !seen[k] {
				seen[k] = true
				clients = append(clients, c)
			}
		}
	}
	if !known {
		return nil, err
	}
	return clients, nil
}

// Replicas implements api.Backend. Each replica that answers counts what is connected to it.
func (b *Backend) Replicas(ctx context.Context) ([]api.Replica, int64, error) {
	replicas, epoch, err := b.Backend.Replicas(ctx)
	if err != nil {
		return nil, 0, err
	}
	all, err := askAll[api.Replica](ctx, b, question{Kind: kindReplica})
	for i := range replicas {
		r := &replicas[i]
		for j := range all {
			if told := &all[j]; told.replica == r.ID && told.err == nil {
				r.Checkers, r.DataPlanes, r.Position, r.Lag = told.value.Checkers, told.value.DataPlanes, told.value.Position, told.value.Lag
				r.Version = cmp.Or(told.value.Version, r.Version)
			}
		}
	}
	return replicas, epoch, err
}

// Status implements api.Backend: the process of this replica, what the leader holds to be true, and what is wrong with
// any of the replicas.
func (b *Backend) Status(ctx context.Context) (api.Status, error) {
	s, err := b.Backend.Status(ctx)
	if err != nil {
		return api.Status{}, err
	}
	all, err := askAll[api.Status](ctx, b, question{Kind: kindStatus})
	if err != nil {
		return api.Status{}, err
	}
	leader, follows := b.peers.Leader()
	if follows {
		b.follow(&s, all, leader)
	}
	for i := range all {
		told := &all[i]
		if told.err == nil {
			addProcess(&s, told.replica, &told.value)
		} else if told.replica != leader || !follows {
			s.Attention = append(s.Attention, api.Attention{
				Kind: string(attention.ReplicaLost), Since: b.silent.since(told.replica), Command: attention.ReplicasCommand,
				Text: attention.ReplicaSilentText(told.replica, status.Convert(told.err).Message()),
			})
		}
	}
	slices.SortStableFunc(s.Attention, func(x, y api.Attention) int {
		return attention.Kind(x.Kind).Compare(attention.Kind(y.Kind))
	})
	return s, nil
}

// follow replaces what is the same for all replicas by what the leader holds to be true.
func (b *Backend) follow(s *api.Status, all []given[api.Status], leader string) {
	err := errUnlinked
	for i := range all {
		told := &all[i].value
		if all[i].replica != leader {
			continue
		}
		if err = all[i].err; err != nil {
			break
		}
		s.Clusters, s.Endpoints, s.Checkers, s.Zones, s.Further = told.Clusters, told.Endpoints, told.Checkers, told.Zones, told.Further
		s.Attention = slices.DeleteFunc(s.Attention, func(a api.Attention) bool { return !attention.Kind(a.Kind).OfReplica() })
		for _, a := range told.Attention {
			if !attention.Kind(a.Kind).OfReplica() {
				s.Attention = append(s.Attention, a)
			}
		}
		return
	}
	s.Attention = append(s.Attention, api.Attention{
		Kind: string(attention.NoLeader), Since: b.silent.since(leader), Command: attention.ReplicasCommand, Text: attention.LeaderSilentText(leader, status.Convert(err).Message()),
	})
}

var errUnlinked = errors.New("this replica has no connection to it")

// addProcess adds the data planes of another replica, and what is wrong with its process.
func addProcess(s *api.Status, replica string, told *api.Status) {
	s.Planes.Synced += told.Planes.Synced
	s.Planes.Behind += told.Planes.Behind
	s.Planes.Refusing += told.Planes.Refusing
	for _, a := range told.Attention {
		switch kind := attention.Kind(a.Kind); {
		case !kind.OfReplica(), kind == attention.NoLeader, kind == attention.ReplicaLost: // this one has its own view of these
		default:
			a.Text = "replica " + replica + ": " + a.Text
			s.Attention = append(s.Attention, a)
		}
	}
}
