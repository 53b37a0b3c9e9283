package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"hdsd/access"
	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/feed"
	"hdsd/eds"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/store"
)

// Core answers questions about the present state.
type Core interface {
	// Ask runs a question on the goroutine that owns the state, and waits for it.
	// With an error the question may still be running: what it writes must not be
	// read.
	Ask(ctx context.Context, question func(State)) error

	// Snapshot returns a snapshot of the state that is newer than the call; an older one if the
	// core is busy.
	Snapshot(ctx context.Context) (*Snapshot, error)

	// NextSnapshot waits for a snapshot that is newer than the call, for as long as it takes.
	NextSnapshot(ctx context.Context) (*Snapshot, error)

	// Done is closed when Ask answers no more.
	Done() <-chan struct{}
}

// State is the present state. Only the question that gets it may use it.
type State interface {
	// Names lists all clusters, sorted.
	Names() []string
	// Cluster gives the cluster of a name, or nil.
	Cluster(name string) *catalog.Cluster
	// Panic says why Envoys are in panic for a cluster; empty if they are not. Since is zero if it is
	// unknown.
	Panic(k *catalog.Cluster) (reason string, since time.Time)
	// Frozen tells whether publishing is frozen.
	Frozen() bool
	// BlockedReason says why no checker gets a cluster; it is empty if some may.
	BlockedReason(k *catalog.Cluster) string

	// Status is what hdsd holds to be true of an endpoint.
	Status(e *catalog.Endpoint) health.Status
	// StrandedReason says why no checker can check an endpoint; it is empty if one
	// can.
	StrandedReason(k *catalog.Cluster, e *catalog.Endpoint) string
	// NotChecked says why hdsd does not check all of a cluster, and since when. The reason is
	// empty if it does, or may soon; then there is a time.
	NotChecked(k *catalog.Cluster) (reason string, since time.Time)
	// Explain gives the health of an endpoint and its reasons.
	Explain(k *catalog.Cluster, e *catalog.Endpoint) api.EndpointHealth
	// ExplainGone gives the health of an endpoint that no source has.
	ExplainGone(key health.Endpoint) api.EndpointHealth

	// Condition says how an endpoint is.
	Condition(e *catalog.Endpoint) Condition
	// Crew says how the checkers are as a whole.
	Crew() Crew
	// Checkers lists all checkers, in no order.
	Checkers() []Checker
	// Paths lists the paths between zones, by zone.
	Paths() []api.Path
	// Lagging lists the checkers that were not sent all of their plan.
	Lagging() map[string]bool
}

// Checker is a checker as far as the State knows it.
type Checker struct {
	api.Checker
	SilenceReason string // what becomes of the endpoints of a checker that is silent
	DoubtReason   string // why its peers' votes are believed and its own are not
}

// Options are what a Backend asks. For some questions it needs only some of them.
type Options struct {
	Core  Core
	Store *store.Store
	HDS   *hds.Server
	EDS   *eds.Server
	Feed  *feed.Feed

	// Relayed lists the clients of the relay as eds.Server.Clients does; nil: there is none.
	Relayed func(only func(name string) bool) []eds.Client

	// Refusing lists the data planes that refuse a response at present; nil: it does not know.
	Refusing func() []eds.Refuser

	// Outside returns the name that everybody else has for a cluster of hdsd's; nil: the same.
	Outside func(own string) string

	// Process says how the process is.
	Process func() Process
}

// Backend implements api.Backend.
type Backend struct {
	Options
	tail      *tail
	listings  *listings
	incidents *incidents

	clusterWatchers atomic.Int64
}

// New makes a Backend.
func New(o Options) *Backend {
	b := &Backend{Options: o, tail: newTail(o.Store), incidents: newIncidents()}
	b.listings = newListings(b)
	return b
}

// visible returns the clusters that the caller may see, with all their versions.
func (b *Backend) visible(ctx context.Context) access.Clusters {
	return access.FromContext(ctx).Clusters().WithVersions(b.Outside)
}

// Watchers counts the watches under way.
func (b *Backend) Watchers() int { return b.tail.size() }

// Endpoints implements api.Backend.
func (b *Backend) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return nil, false, err
		}
	}
	if !q.AsOf.IsZero() {
		return b.endpointsAsOf(ctx, q)
	}
	s := scan{query: q, may: b.visible(ctx)}
	if err := b.scan(ctx, &s); err != nil {
		return nil, false, err
	}
	return s.found, s.more, nil
}

// scan lists present endpoints. With an error, s must not be read.
func (b *Backend) scan(ctx context.Context, s *scan) error {
	s.cluster = s.query.Cluster
	if s.query.After != nil {
		s.cluster, s.after = s.query.After.Cluster, s.query.After
	}
	for !s.finished {
		if err := b.Core.Ask(ctx, s.step); err != nil {
			return err
		}
	}
	return nil
}

// mostPages is how many pages of the store a question reads at once where a part of each is
// filtered out.
const mostPages = 20

// Transitions implements api.Backend.
func (b *Backend) Transitions(ctx context.Context, q api.TransitionQuery) ([]health.Transition, string, error) {
	if q.Cluster != "" {
		if err := b.checkKnown(ctx, q.Cluster); err != nil {
			return nil, "", err
		}
	}
	var all []health.Transition
	may, limit := b.visible(ctx), q.Limit
	for pages := 1; ; pages++ {
		found, next, err := b.Store.Transitions(storeQuery(&q))
		if errors.Is(err, store.ErrBadToken) {
			return nil, "", api.ErrBadToken
		}
		if err == nil {
			err = ctx.Err()
		}
		if !may.All() {
			found = slices.DeleteFunc(found, func(t health.Transition) bool { return !may.Has(t.Endpoint.Cluster) })
		}
		if all = append(all, found...); err != nil || len(all) == limit || next == "" || pages == mostPages {
			return all, next, err
		}
		q.Token, q.Limit = next, limit-len(all) // a part of the page was filtered out
	}
}

// Gaps implements api.Backend.
func (b *Backend) Gaps(_ context.Context, q api.TransitionQuery, next string) ([]api.Gap, error) {
	found, err := b.Store.Gaps(storeQuery(&q), next)
	all := make([]api.Gap, len(found))
	for i, g := range found {
		all[i] = api.Gap{Start: g.Start, End: g.End, Transitions: g.Transitions}
	}
	return all, err
}

// HistoryBegan implements api.Backend.
func (b *Backend) HistoryBegan() (time.Time, error) { return b.Store.Began() }

// HistoryFailing implements api.Backend.
func (b *Backend) HistoryFailing() string {
	if err := b.Store.Stats().LastError; err != nil {
		return err.Error()
	}
	return ""
}

func storeQuery(q *api.TransitionQuery) store.Query {
	return store.Query{
		Cluster: q.Cluster, Address: q.Address, Filter: q.Filter, Checker: q.Checker, Start: q.Start, End: q.End,
		NewestFirst: q.NewestFirst, Limit: q.Limit, Token: q.Token,
	}
}

// checkKnown gives an error unless a cluster exists or ever did, for this caller.
func (b *Backend) checkKnown(ctx context.Context, name string) error {
	var present bool
	if err := b.Core.Ask(ctx, func(s State) { present = s.Cluster(name) != nil }); err != nil {
		return err
	}
	return b.checkName(b.visible(ctx), name, present)
}

// checkName gives an error unless a cluster is present or ever was, for a caller.
func (b *Backend) checkName(may access.Clusters, name string, present bool) error {
	if !may.Has(name) || !present && !b.Store.KnownCluster(name) {
		return fmt.Errorf("%w %q", api.ErrUnknownCluster, name)
	}
	return nil
}
