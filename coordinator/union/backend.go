package union

import (
	"context"
	"errors"
	"runtime"
	"time"

	"hdsd/api"
	"hdsd/health"
	"hdsd/peer/limit"
)

// Peers are the other replicas. Any goroutine may call the methods.
type Peers interface {
	// Leader returns the id of the replica that leads; not ok if it is this one, or there is none.
	Leader() (id string, ok bool)

	// Others lists the other replicas that can be asked.
	Others() []string

	// Ask has a replica Answer a question.
	Ask(ctx context.Context, replica string, question []byte) (answer []byte, err error)
}

// patience bounds the wait for another replica.
const patience = 2 * time.Second

// Backend answers questions as one of several replicas. Any goroutine may use it.
type Backend struct {
	api.Backend // of this replica alone

	// Accept accepts what a source takes away, on this replica alone. It is set before the first question.
	Accept func(context.Context, Acceptance) (api.Held, error)

	// Preview and OwnOverrides answer as PreviewOverride and Overrides of api.Controller, of this replica alone. They are
	// set before the first question.
	Preview      func(context.Context, api.Override) (api.Preview, error)
	OwnOverrides func(context.Context) ([]api.Override, error)

	id     string
	peers  Peers
	turns  *limit.Queue // of questions of other replicas
	silent silences
}

// New makes a Backend of a replica with this id, on top of its own.
func New(id string, own api.Backend, peers Peers) *Backend {
	return &Backend{Backend: own, id: id, peers: peers, turns: limit.NewWork(runtime.GOMAXPROCS(0)/2, api.DefaultPageSize), silent: silences{all: map[string]*silence{}}}
}

// rows is a page of a list.
type rows[Row any] struct {
	Rows []Row
	More bool
}

// check reports a page without an end: the next one goes on behind its last row.
func (r *rows[Row]) check() error {
	if r.More && len(r.Rows) == 0 {
		return errors.New("the answer has no rows, and says that there are more")
	}
	return nil
}

// Endpoints implements api.Backend. The past is the same on each replica.
func (b *Backend) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	if !q.AsOf.IsZero() {
		return b.Backend.Endpoints(ctx, q)
	}
	if found, ok, err := askLeader[rows[api.EndpointHealth]](ctx, b, question{Kind: kindEndpoints, Endpoints: &q}); ok {
		for i := range found.Rows {
			if e := &found.Rows[i]; e.Override != nil && e.Voted == nil {
				e.Voted = &health.Verdict{Reason: "another replica does not tell"} // readers count on it
			}
		}
		return found.Rows, found.More, err
	}
	return b.Backend.Endpoints(ctx, q)
}

// Clusters implements api.Backend.
func (b *Backend) Clusters(ctx context.Context, q api.ClusterQuery) ([]api.Cluster, bool, error) {
	found, ok, err := askLeader[rows[cluster]](ctx, b, question{Kind: kindClusters, Clusters: &q})
	if !ok {
		return b.Backend.Clusters(ctx, q)
	}
	clusters := make([]api.Cluster, len(found.Rows))
	for i := range found.Rows {
		clusters[i] = found.Rows[i].decode()
	}
	return clusters, found.More, err
}

// Checkers implements api.Backend.
func (b *Backend) Checkers(ctx context.Context) ([]api.Checker, error) {
	if found, ok, err := askLeader[[]api.Checker](ctx, b, question{Kind: kindCheckers}); ok {
		return found, err
	}
	return b.Backend.Checkers(ctx)
}

// Paths implements api.Backend.
func (b *Backend) Paths(ctx context.Context) ([]api.Path, error) {
	if found, ok, err := askLeader[[]api.Path](ctx, b, question{Kind: kindPaths}); ok {
		return found, err
	}
	return b.Backend.Paths(ctx)
}

// Overview implements api.Backend.
func (b *Backend) Overview(ctx context.Context, limit int) (api.Overview, error) {
	if found, ok, err := askLeader[api.Overview](ctx, b, question{Kind: kindOverview, Limit: limit}); ok {
		return found, err
	}
	return b.Backend.Overview(ctx, limit)
}
