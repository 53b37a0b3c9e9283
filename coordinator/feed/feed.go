package feed

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"

	"hdsd/catalog"
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/hold"
	"hdsd/source/names"
)

// Options are the parameters of a Feed besides its configuration.
type Options struct {
	Node   *corev3.Node // hdsd, as management servers know it
	Dir    string       // for the snapshots of management servers
	Limits *configv1.Limits
	Log    zerolog.Logger

	// Relay is the source with the resources of the relay's clients, named RelayName; nil:
	// there is no relay.
	Relay     Reader
	RelayName string

	// Conditions returns the conditions of checked endpoints, in their order; nil if it stops.
	// It may wait.
	Conditions func(ctx context.Context, endpoints []*catalog.Endpoint) []Condition
}

// Feed is the open sources of a configuration.
type Feed struct {
	// These fields are set once.
	options Options
	intake  *Intake
	pending *pending
	relay   *opened                // nil: there is no relay
	deliver func(catalog.Delivery) // before Start it is nil

	open atomic.Pointer[sources] // written with mu held

	mu      sync.Mutex           // orders Start, Reload and Stop
	running context.Context      // of Start; nil before it
	hold    map[string]hold.Rule // by source
	resolve map[string]bool      // by source
	clock   *clock               // nil before Start
	dns     *resolution          // nil before Start
}

// Open opens the sources of a configuration and reads the files among them. It
// fails if a file source cannot be read at all. It follows no changes yet.
func Open(c *configv1.Config, o Options) (*Feed, error) {
	f := &Feed{options: o, pending: newPending()}
	f.intake = NewIntake(func(d catalog.Delivery) { f.deliver(d) }, f, o.Log)
	if o.Relay != nil {
		f.relay = &opened{name: o.RelayName, relay: o.Relay}
	}
	sources, err := f.openAll(c)
	if err != nil {
		return nil, err
	}
	f.open.Store(&sources)
	f.removeSnapshots()
	f.hold, f.intake.guards.keep = holdRules(c), f.keepHeld
	f.resolve = resolving(c)
	f.intake.dns.resolver = names.New(names.Options{Resolvers: config.Resolvers(c), File: filepath.Join(o.Dir, "names.json"), Log: o.Log, Standings: f.standings})
	f.pending.unresolved = f.intake.Unresolved
	f.restoreHeld(time.Now(), slices.Collect(maps.Keys(f.hold)))
	return f, nil
}

// Start delivers what the sources have. From then on it delivers their changes,
// until ctx ends or Stop is called.
func (f *Feed) Start(ctx context.Context, r *catalog.Rules, deliver func(catalog.Delivery)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.deliver = ctx, deliver
	f.restart(r)
	f.clock = startClock(ctx, f.intake)
	f.dns = startResolution(ctx, f)
}

// Reload replaces the configuration and the rules. On an error it changes nothing.
func (f *Feed) Reload(c *configv1.Config, r *catalog.Rules) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := f.openAll(c)
	if err != nil {
		return err
	}
	f.hold, f.resolve = holdRules(c), resolving(c)
	f.replace(next, r)
	return nil
}

// replace replaces the open sources.
func (f *Feed) replace(next sources, r *catalog.Rules) {
	f.open.Load().stop(next)
	f.open.Store(&next)
	if f.running != nil {
		f.restart(r)
	}
}

// restart delivers all resources of the sources, then follows their changes.
func (f *Feed) restart(r *catalog.Rules) {
	sources := *f.open.Load()
	f.intake.Resolve(f.resolve)
	f.intake.Restart(sources.readers(), r, f.hold)
	sources.run(f.running, func(reader Reader, set *source.Set) {
		f.intake.Take(reader, set)
		f.pending.hear(set)
	}, f.options.Log)
	f.pending.expect(sources)
}

// Stop ends the work of Start, and waits for it. Without Start it does nothing.
func (f *Feed) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open.Load().stop(nil)
	f.clock.stop()
	f.dns.stop()
}

// Sources returns the state of each source, in the order of precedence.
func (f *Feed) Sources() []SourceState { return f.intake.Sources() }

// Held returns the sources with held parts, without waiting.
func (f *Feed) Held() []SourceState { return f.intake.Held() }

// Broken returns the broken sources. It does not wait.
func (f *Feed) Broken() []Broken { return f.intake.Broken() }

// Accept accepts the removals of a source, as Intake.Accept says.
func (f *Feed) Accept(name string, start time.Time, revision string) (hold.Held, SourceState, error) {
	return f.intake.Accept(name, start, revision)
}

// Answered is closed once every management server has answered or was given up.
func (f *Feed) Answered() <-chan struct{} { return f.pending.done }

// Waiting lists the management servers that have yet to answer, as text; it is empty if all
// have.
func (f *Feed) Waiting() string { return f.pending.String() }

// GivenUp lists the sources that did not answer within their
// initial_fetch_timeout.
func (f *Feed) GivenUp() []string { return f.pending.givenUp() }
