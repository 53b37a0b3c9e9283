package union

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/access"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 345_000_000, time.UTC)

// own is the Backend of one replica alone. Its answers have its id.
type own struct {
	api.Backend // nil
	id          string
	err         error // of all questions
	endpoints   int
	override    *api.Override // of each endpoint
	overrides   []api.Override
	limits      []int // that it was asked for
	clients     []api.Client
	status      api.Status
	clusters    []api.Cluster
	seen        []access.Clusters // which callers might see
	asked       []string

	aside, busy chan struct{} // Checkers waits for an element, without its turn or with it; nil: it does not wait
	mu          sync.Mutex    // guards what it notes
}

func (o *own) ask(ctx context.Context, question string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked, o.seen = append(o.asked, question), append(o.seen, access.FromContext(ctx).Clusters())
	return o.err
}

func (o *own) Endpoints(ctx context.Context, q api.EndpointQuery) (found []api.EndpointHealth, more bool, err error) {
	if err := o.ask(ctx, "endpoints"); err != nil {
		return nil, false, err
	}
	o.limits = append(o.limits, q.Limit)
	for i := range min(o.endpoints, q.Limit) {
		found = append(found, api.EndpointHealth{Endpoint: health.Endpoint{Cluster: o.id, Address: fmt.Sprint(i)}, Override: o.override})
	}
	return found, o.endpoints > q.Limit, nil
}

func (o *own) Clusters(ctx context.Context, _ api.ClusterQuery) ([]api.Cluster, bool, error) {
	return o.clusters, false, o.ask(ctx, "clusters")
}

func (o *own) Checkers(ctx context.Context) ([]api.Checker, error) {
	err := o.ask(ctx, "checkers")
	if o.aside != nil {
		_ = api.Aside(ctx, func() error { <-o.aside; return nil })
	}
	if o.busy != nil {
		<-o.busy
	}
	return []api.Checker{{Checker: health.Checker{ID: o.id}}}, err
}

func (o *own) preview(ctx context.Context, asked api.Override) (api.Preview, error) {
	asked.Author = o.id
	return api.Preview{Override: asked}, o.ask(ctx, "preview")
}

func (o *own) ownOverrides(ctx context.Context) ([]api.Override, error) {
	return slices.Clone(o.overrides), o.ask(ctx, "overrides")
}

func (o *own) Paths(ctx context.Context) ([]api.Path, error) {
	return []api.Path{{From: o.id}}, o.ask(ctx, "paths")
}

func (o *own) Overview(ctx context.Context, limit int) (api.Overview, error) {
	return api.Overview{Clusters: []api.ClusterOverview{{Cluster: o.id}}, Further: limit}, o.ask(ctx, "overview")
}

func (o *own) Clients(ctx context.Context, cluster string) ([]api.Client, error) {
	err := o.ask(ctx, strings.TrimSpace("clients "+cluster))
	if err != nil {
		return nil, err
	}
	return slices.Clone(o.clients), nil
}

func (o *own) Status(ctx context.Context) (api.Status, error) {
	s := o.status
	s.Attention = slices.Clone(s.Attention)
	return s, o.ask(ctx, "status")
}

func (o *own) Replicas(ctx context.Context) ([]api.Replica, int64, error) {
	var all []api.Replica
	for _, id := range []string{"a", "b", "c"} {
		r := api.Replica{ID: id, Self: id == o.id, Leader: id == "a", Address: "known to " + o.id}
		if r.Self {
			r.Checkers, r.DataPlanes, r.Position, r.Lag, r.Version = 10, 20, 30, time.Second, "of "+o.id
		}
		all = append(all, r)
	}
	return all, 42, o.ask(ctx, "replicas")
}

// network has the replicas a, b and c, of which a leads.
type network struct {
	own      map[string]*own
	replicas map[string]*Backend
	leader   string          // empty: none
	hangs    map[string]bool // they do not answer
	gone     map[string]bool // they have no connection
	forge    func(question []byte) []byte
}

func newNetwork() *network {
	n := &network{own: map[string]*own{}, replicas: map[string]*Backend{}, leader: "a", hangs: map[string]bool{}, gone: map[string]bool{}}
	for _, id := range []string{"a", "b", "c"} {
		n.own[id] = &own{id: id, endpoints: 3, clients: []api.Client{{ID: "dp-" + id}}, status: api.Status{Version: id}}
		n.replicas[id] = New(id, n.own[id], end{n, id})
		n.replicas[id].Preview, n.replicas[id].OwnOverrides = n.own[id].preview, n.own[id].ownOverrides
	}
	return n
}

// end is the network as a replica sees it.
type end struct {
	*network
	id string
}

func (e end) Leader() (string, bool) { return e.leader, e.leader != "" && e.leader != e.id }

func (e end) Others() (others []string) {
	for _, id := range []string{"a", "b", "c"} {
		if id != e.id && !e.gone[id] {
			others = append(others, id)
		}
	}
	return others
}

var errRefused = errors.New("connection refused")

func (e end) Ask(ctx context.Context, replica string, question []byte) ([]byte, error) {
	switch {
	case e.hangs[replica]:
		<-ctx.Done()
		return nil, ctx.Err()
	case e.gone[replica]:
		return nil, errRefused
	}
	if e.forge != nil {
		question = e.forge(question)
	}
	return e.replicas[replica].Answer(context.WithoutCancel(ctx), question)
}
