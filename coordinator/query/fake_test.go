package query

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/catalog"
	"hdsd/coordinator/feed"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/source"
)

// fake is a core with a state that tests write.
type fake struct {
	mu         sync.Mutex // held while a question runs
	clusters   map[string]*catalog.Cluster
	status     map[health.Endpoint]health.Status
	changed    map[health.Endpoint]health.Verdict // as Explain gives them
	explain    func(*api.EndpointHealth)          // what Explain adds; nil: nothing
	stranded   map[string]string                  // by address: StrandedReason
	unchecked  map[string]string                  // by cluster: NotChecked
	panics     map[string]string                  // by cluster: Panic
	blocked    string                             // BlockedReason of all
	overridden map[string]bool                    // addresses
	checkers   []Checker
	lagging    map[string]bool
	crew       Crew
	answered   func()    // called after each question; nil: nothing
	latest     *Snapshot // what a busy core gives; nil: it is not busy
	done       chan struct{}
}

// backendOf is a backend of a fake, without history and checkers.
func backendOf(t *testing.T, f *fake) *Backend {
	t.Helper()
	none, err := feed.Open(&configv1.Config{}, feed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Core: f, Store: openStore(t), Feed: none, HDS: hds.NewServer(hds.Options{}, deaf{}), Process: func() Process { return Process{} },
	})
}

func newFake(clusters ...*source.Cluster) *fake {
	f := &fake{
		clusters: map[string]*catalog.Cluster{}, status: map[health.Endpoint]health.Status{},
		changed: map[health.Endpoint]health.Verdict{}, done: make(chan struct{}),
	}
	for _, c := range clusters {
		f.clusters[c.Name] = catalog.Prepare(c, catalog.NewRules(&configv1.Config{}))
	}
	return f
}

// Ask implements Core.
func (f *fake) Ask(ctx context.Context, question func(State)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.done:
		return api.ErrStopping
	default:
	}
	question(f)
	if f.answered != nil {
		f.answered()
	}
	return ctx.Err()
}

// Snapshot implements Core.
func (f *fake) Snapshot(ctx context.Context) (*Snapshot, error) {
	if f.latest != nil {
		return f.latest, nil
	}
	return f.NextSnapshot(ctx)
}

// NextSnapshot implements Core.
func (f *fake) NextSnapshot(ctx context.Context) (made *Snapshot, err error) {
	err = f.Ask(ctx, func(s State) {
		all := NewSnapshots()
		all.want()
		for all.Step(s); all.making != nil; {
			all.Step(s)
		}
		made = all.latest.Load()
	})
	return made, err
}

// Done implements Core.
func (f *fake) Done() <-chan struct{} { return f.done }

func (f *fake) Names() []string { return slices.Sorted(maps.Keys(f.clusters)) }

func (f *fake) Cluster(name string) *catalog.Cluster { return f.clusters[name] }

func (f *fake) Frozen() bool { return false }

func (f *fake) BlockedReason(*catalog.Cluster) string { return f.blocked }

func (f *fake) Status(e *catalog.Endpoint) health.Status { return f.status[e.Key()] }

func (f *fake) StrandedReason(_ *catalog.Cluster, e *catalog.Endpoint) string {
	return f.stranded[e.Address()]
}

func (f *fake) Panic(k *catalog.Cluster) (reason string, since time.Time) {
	return f.panics[k.Source.Name], time.Time{}
}

func (f *fake) NotChecked(k *catalog.Cluster) (reason string, since time.Time) {
	return f.unchecked[k.Source.Name], time.Time{}
}

func (f *fake) Explain(_ *catalog.Cluster, e *catalog.Endpoint) api.EndpointHealth {
	out := api.EndpointHealth{Endpoint: e.Key(), Verdict: f.changed[e.Key()]}
	if out.Verdict.Since.IsZero() {
		out.Verdict.Status = f.status[e.Key()]
	}
	if f.explain != nil {
		f.explain(&out)
	}
	return out
}

func (f *fake) ExplainGone(key health.Endpoint) api.EndpointHealth {
	return api.EndpointHealth{Endpoint: key, Verdict: health.Verdict{Reason: "gone"}}
}

func (f *fake) Condition(e *catalog.Endpoint) Condition {
	c := Condition{Status: f.status[e.Key()], Since: f.changed[e.Key()].Since, Overridden: f.overridden[e.Address()], Stranded: f.stranded[e.Address()] != ""}
	if c.Status != health.Unknown {
		c.Voters = 3
	}
	return c
}

func (f *fake) Crew() Crew { return f.crew }

func (f *fake) Checkers() []Checker { return f.checkers }

func (f *fake) Paths() []api.Path { return nil }

func (f *fake) Lagging() map[string]bool { return f.lagging }
