package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/coordinator/feed"
	"hdsd/eds"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
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

	// Done is closed when Ask stops answering.
	Done() <-chan struct{}
}

// State is the present state. Only the question that gets it may use it.
type State interface {
	// Names lists all clusters, sorted.
	Names() []string
	// Cluster returns the cluster of a name, or nil.
	Cluster(name string) *catalog.Cluster
	// Panic returns the reason why Envoys are in panic for a cluster; empty if they are not.
	// Since is zero if it is unknown.
	Panic(k *catalog.Cluster) (reason string, since time.Time)
	// Frozen reports whether publishing is frozen.
	Frozen() bool
	// BlockedReason returns the reason why no checker gets a cluster; it is empty if some may.
	BlockedReason(k *catalog.Cluster) string

	// Status returns the health that hdsd holds to be true of an endpoint.
	Status(e *catalog.Endpoint) health.Status
	// StrandedReason returns the reason why no checker can check an endpoint; it is empty if
	// one can.
	StrandedReason(k *catalog.Cluster, e *catalog.Endpoint) string
	// NotChecked returns the reason why hdsd does not check all of a cluster, and since when.
	// The reason is empty if it does, or may soon; then there is a time.
	NotChecked(k *catalog.Cluster) (reason string, since time.Time)
	// Explain returns the health of an endpoint with its reasons.
	Explain(k *catalog.Cluster, e *catalog.Endpoint) api.EndpointHealth
	// ExplainGone returns the health of an endpoint that no source has.
	ExplainGone(key health.Endpoint) api.EndpointHealth

	// Condition returns the condition of an endpoint.
	Condition(e *catalog.Endpoint) Condition
	// Crew returns the condition of the checkers as a whole.
	Crew() Crew
	// Checkers lists all checkers, in no order.
	Checkers() []Checker
	// Paths lists the paths between zones, by zone.
	Paths() []api.Path
	// Lagging lists the checkers that were not sent all of their plan.
	Lagging() map[string]bool
}

// Checker is a checker as known to the State.
type Checker struct {
	api.Checker
	SilenceReason string // effect of the silence on its endpoints
	DoubtReason   string // reason why its peers' votes are believed and its own are not

	Stream *hds.State // as another replica tells; nil: this one has its stream, if it has one
}

// Options are the data sources of a Backend. Some questions need only some of them.
type Options struct {
	ID    string // node id of this coordinator
	Core  Core
	Store *store.Store
	HDS   *hds.Server
	EDS   *eds.Server
	Feed  *feed.Feed

	// Relayed lists the clients of the relay as eds.Server.Clients does; nil: there is none.
	Relayed func(wanted func(name string) bool) []publish.Client

	// Refusing lists the data planes that currently refuse a response; nil: unknown.
	Refusing func() []publish.Refuser

	// Outside returns the outside name of a cluster of hdsd's; nil: the same.
	Outside func(name string) string

	// Version returns the version of a cluster that hdsd has or had a name for; nil: judge by
	// the name.
	Version func(name string) string

	// Replicas lists the replicas, by id, and the epoch of their leader, as this one knows them;
	// nil: it is alone.
	Replicas func(context.Context) (replicas []api.Replica, epoch int64, err error)

	// Process returns the condition of the process.
	Process func() Process
}

// Backend implements api.Backend.
type Backend struct {
	Options
	tail      *tail
	listings  *listings
	incidents *incidents
	flips     *flips

	clusterWatchers atomic.Int64
}

// New makes a Backend.
func New(o Options) *Backend {
	if o.Version == nil {
		o.Version = func(name string) string {
			_, version := health.SplitVersion(name)
			return version
		}
	}
	b := &Backend{Options: o, tail: newTail(o.Store), incidents: newIncidents(o.Core, o.Store), flips: newFlips()}
	b.listings = newListings(b.step)
	return b
}

// visible returns the clusters that the caller may see, with all their versions.
func (b *Backend) visible(ctx context.Context) access.Clusters {
	return access.FromContext(ctx).Clusters().WithVersions(b.Outside)
}

// Watchers counts the current watches.
func (b *Backend) Watchers() int { return b.tail.size() }

// Endpoints implements api.Backend.
func (b *Backend) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	if _, err := b.names(ctx, q.Cluster); err != nil {
		return nil, false, err
	}
	if !q.AsOf.IsZero() {
		return b.endpointsAsOf(ctx, q)
	}
	s := scan{query: q, visible: b.visible(ctx)}
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

// mostPages is the number of pages of the store that a question reads at once if a part of each
// is filtered out.
const mostPages = 20

// Transitions implements api.Backend.
func (b *Backend) Transitions(ctx context.Context, q api.TransitionQuery) ([]health.Transition, string, error) {
	names, err := b.names(ctx, q.Cluster)
	if err != nil {
		return nil, "", err
	}
	var list []health.Transition
	visible, limit := b.visible(ctx), q.Limit
	for pages := 1; ; pages++ {
		query := storeQuery(&q)
		query.Versions = names
		found, next, err := b.Store.Transitions(query)
		if errors.Is(err, store.ErrBadToken) {
			return nil, "", api.ErrBadToken
		}
		if err == nil {
			err = ctx.Err()
		}
		if !visible.All() {
			found = slices.DeleteFunc(found, func(t health.Transition) bool { return !visible.Has(t.Endpoint.Cluster) })
		}
		if list = append(list, found...); err != nil || len(list) == limit || next == "" || pages == mostPages {
			return list, next, err
		}
		q.Token, q.Limit = next, limit-len(list) // a part of the page was filtered out
	}
}

// Gaps implements api.Backend.
func (b *Backend) Gaps(_ context.Context, q api.TransitionQuery, next string) ([]api.Gap, error) {
	found, err := b.Store.Gaps(storeQuery(&q), next)
	list := make([]api.Gap, len(found))
	for i, g := range found {
		list[i] = api.Gap{Start: g.Start, End: g.End, Transitions: g.Transitions}
	}
	return list, err
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

// names returns the names that hdsd has or had for the versions of a cluster, sorted; none for
// an empty name. It returns an error unless the cluster exists or ever did, for this caller.
func (b *Backend) names(ctx context.Context, cluster string) (names []string, err error) {
	if cluster == "" {
		return nil, nil
	}
	var recorded []string
	if b.Store != nil { // otherwise the question is about the present only
		recorded = b.Store.KnownVersions(cluster)
	}
	answer := make(chan []string, 1)
	err = b.Core.Ask(ctx, func(s State) {
		present := versions(s, cluster)
		for _, name := range recorded {
			if s.Cluster(name) == nil { // otherwise it is there already, or another cluster
				present = append(present, name)
			}
		}
		answer <- present
	})
	if err != nil {
		return nil, err
	}
	names = <-answer
	if err := b.checkName(b.visible(ctx), cluster, len(names) > 0); err != nil {
		return nil, err
	}
	if !slices.Contains(names, cluster) {
		names = append(names, cluster)
	}
	slices.Sort(names)
	return names, nil
}

// checkName returns an error unless a cluster is present or ever was, for a caller.
func (b *Backend) checkName(visible access.Clusters, name string, present bool) error {
	if !visible.Has(name) || !present && !b.Store.KnownCluster(name) {
		return fmt.Errorf("%w %q", api.ErrUnknownCluster, name)
	}
	return nil
}
