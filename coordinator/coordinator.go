package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/catalog"
	"hdsd/config"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/query"
	"hdsd/csds"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/hds"
	"hdsd/log"
	"hdsd/machine"
	"hdsd/notify/send"
	"hdsd/peer/access"
	"hdsd/peer/access/guard"
	"hdsd/peer/limit/inflight"
	"hdsd/relay"
	"hdsd/store"
)

// Options are what a Coordinator needs besides its configuration.
type Options struct {
	Log     zerolog.Logger
	Version string // of the program, for its metrics
	Memory  uint64 // memory limit of the process in bytes; 0: unknown

	// Ready is called once, when hdsd is ready for the first time. It may be nil.
	Ready func()
}

// Coordinator is a whole hdsd: it joins the stages and owns their life cycle.
type Coordinator struct {
	// Set once.
	planeServers
	log      zerolog.Logger
	store    *store.Store
	hds      *hds.Server
	csds     *csds.Server
	core     *core
	feed     *feed.Feed
	servers  *servers
	query    *query.Backend
	hub      *send.Hub
	registry *prometheus.Registry
	ready    readyState
	replicas *replicas // nil: this coordinator is alone

	mu      sync.Mutex       // guards the fields below
	started *configv1.Config // configuration of the start, for fields that only a restart changes
	config  *configv1.Config // latest configuration
	phase   phase
	running context.Context // of Run; nil before Run
	cancel  context.CancelFunc
	ended   chan struct{} // closed after everything is released
}

// phase is the phase of the life of a Coordinator.
type phase uint8

const (
	created phase = iota
	running
	closed
)

// ErrUsed is the error of Run and Reload for a Coordinator that was run or closed before.
var ErrUsed = errors.New("this coordinator was run or closed before: make another one")

// New opens the database, reads the sources and binds the addresses. It serves
// nothing before Run. The caller must run or close the Coordinator.
func New(ctx context.Context, c *configv1.Config, o Options) (_ *Coordinator, err error) {
	built := &Coordinator{
		log: o.Log, started: c, config: c, registry: prometheus.NewRegistry(), ended: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			_ = built.release() // err is the cause
		}
	}()
	built.ready.version, built.ready.start = cmp.Or(o.Version, "unknown"), time.Now()
	built.ready.changed, built.ready.onReady = make(chan struct{}, 1), o.Ready
	built.ready.needsDisk.Store(c.GetHistory().GetRequireWritable())
	built.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	guarded := guard.New(guard.Options{Policy: policyOf(c), Log: o.Log, Registerer: built.registry})
	if built.servers, err = listen(c, o.Log, newCalls(built.registry, o.Log), guarded, newBounds(built.registry, o.Log, c.GetLimits(), o.Memory)); err != nil {
		return nil, err
	}
	if built.store, err = built.openStore(ctx); err != nil {
		return nil, err
	}
	if built.replicas, err = openReplicas(built); err != nil {
		return nil, err
	}
	stored := readState(built.store)
	defer func() { _, _ = stored() }() // waits, before release closes the store
	node := Node(c.GetNodeId(), o.Version)
	built.openRelay()
	options := feed.Options{Node: node, Dir: c.GetDataDir(), Limits: c.GetLimits(), Log: o.Log}
	options.Conditions = func(ctx context.Context, all []*catalog.Endpoint) []feed.Condition {
		return built.core.conditions(ctx, all)
	}
	if built.relay != nil {
		options.Relay, options.RelayName = built.relay.Source(), relay.SourceName
	}
	if built.feed, err = feed.Open(c, options); err != nil {
		return nil, err
	}
	built.registry.MustRegister(built.feed)
	state, err := stored()
	if err != nil {
		return nil, err
	}
	if built.replicas != nil {
		if built.store, state, err = built.replicas.takeCopy(ctx, state, built.openStore); err != nil {
			return nil, err
		}
	}
	built.wire(state)
	if built.files, err = built.openFiles(); err != nil {
		return nil, err
	}
	built.registerProcess(o.Version)
	return built, built.register()
}

// openStore opens the database.
func (c *Coordinator) openStore(ctx context.Context) (*store.Store, error) {
	return store.Open(ctx, c.started.GetDataDir(), store.Options{
		Retention: c.started.GetHistory().GetRetention().AsDuration(),
		OnError: func(err error) {
			c.log.Error().Str("event", "history_trouble").Err(err).Msg("the disk does not accept the history, or damaged values were skipped")
		},
		OnDisk: func(failing error) {
			logDisk(c.log, failing)
			c.ready.disk(failing, time.Now())
			c.ready.change()
		},
		MaxBytes: int64(c.started.GetHistory().GetMaxBytes()),
		OnQuota:  func(q store.Quota) { logQuota(c.log, &q) },
		OnGap:    func(g store.Gap) { logGap(c.log, &g) },
		OnClock:  func(now store.Clock) { logClock(c.log, now) },

		OnAuditGap: func(g store.AuditGap) { logAuditGap(c.log, &g) },
	})
}

// wire makes the stages, joins them, and restores the stored state.
func (c *Coordinator) wire(stored log.State) {
	c.eds = eds.NewServer(c.subscriberOptions())
	c.core = newCore(machine.Timing{
		Report: c.started.GetReporting().GetInterval().AsDuration(),
		Grace:  c.started.GetAssignment().GetReconnectGrace().AsDuration(),
		Settle: c.started.GetAssignment().GetSettle().AsDuration(),

		ZoneViews: c.started.GetDataPlanes().GetZoneHealth() != configv1.ZoneHealth_GLOBAL,
	}, c.log, newMetrics(c.registry), c.planes(), c.store)
	c.hds = hds.NewServer(hds.Options{
		Interval: c.core.Timing.Report, MaxMessageBytes: int(c.started.GetLimits().GetMaxMessageBytes()),
		Bodies: c.servers.bounds.bodies, MaxIDsPerCaller: int(c.started.GetLimits().GetMaxIdsPerCaller()), MaxJoinsPerMinute: int(c.started.GetLimits().GetMaxJoinsPerMinute()),
		Waited: inflight.Waited, Check: inflight.Check, Ended: inflight.Ended, Planned: c.servers.planned, PlannedGrace: c.core.Timing.Grace,
		Log: c.log, Named: func(own string) zerolog.LogObjectMarshaler { return c.core.names.logFields(own) }, Registerer: c.registry,
	}, sink{c.core})
	c.hds.SetAdmission(admission(c.started))
	registerStore(c.registry, c.store)
	c.servers.refusals = newPlaneRefusals(c.log, c.registry, c.refusing)
	options := query.Options{ID: c.started.GetNodeId(), Refusing: c.refusing, Core: queryCore{c.core}, Outside: queryCore{c.core}.Outside, Version: queryCore{c.core}.Version, Store: c.store, HDS: c.hds, EDS: c.eds, Feed: c.feed, Process: c.process}
	if c.relay != nil {
		options.Relayed = c.relay.Clients
	}
	if c.replicas != nil {
		options.Replicas = c.replicas.list
	}
	c.query = query.New(options)
	c.replicas.answer(c.query)
	c.core.recorder.onTransitions = c.query.Flipped
	c.core.hds, c.core.publisher.complete = c.hds, c.eds.Complete
	c.openHub()
	c.ready.restored = countRestored(&stored)
	c.record(&stored)
	c.replicas.join(c.core, &stored, c.core.Timing)
	c.core.restore(stored)
}

// subscriberOptions returns the options of the xDS server for data planes.
func (c *Coordinator) subscriberOptions() eds.Options {
	planes := c.started.GetDataPlanes()
	o := eds.Options{
		Identifier: c.started.GetNodeId(), Log: c.log, Metrics: c.registry, Incomplete: true, TTL: map[string]time.Duration{},
		MaxNames: config.Names(c.started), MaxBodyBytes: int(c.started.GetLimits().GetMaxMessageBytes()),
		Bodies: c.servers.bounds.bodies, Names: c.servers.bounds.names,
		Authority:      planes.GetXdstpAuthority(),
		ZoneVariants:   planes.GetZoneHealth() != configv1.ZoneHealth_GLOBAL,
		ZoneByLocality: planes.GetZoneHealth() == configv1.ZoneHealth_BY_LOCALITY,
	}
	for typeURL, ttl := range map[string]*durationpb.Duration{resourcev3.EndpointType: planes.GetAssignmentTtl(), resourcev3.ClusterType: planes.GetClusterTtl()} {
		if ttl != nil {
			o.TTL[typeURL] = ttl.AsDuration()
		}
	}
	return o
}

// release closes everything that New opened, if Run was not called.
func (c *Coordinator) release() error {
	if c.servers != nil {
		c.servers.close()
	}
	c.files.stop()
	if c.core != nil {
		c.core.tape.discard()
	}
	if c.relay != nil {
		c.relay.Close()
	}
	c.replicas.close()
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// Close ends Run and waits for it. If Run was not called, it closes everything that New opened. It may be
// called more than once.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	previous := c.phase
	c.phase = closed
	if previous == running {
		c.cancel()
	}
	c.mu.Unlock()
	if previous == created {
		defer close(c.ended)
		return c.release()
	}
	<-c.ended
	return nil
}

// GRPCAddress returns the address that serves HDS, xDS and gRPC queries.
func (c *Coordinator) GRPCAddress() string { return c.servers.grpcListener.Addr().String() }

// HTTPAddress returns the address that serves REST and metrics.
func (c *Coordinator) HTTPAddress() string { return c.servers.httpListener.Addr().String() }

// ProbesAddress returns the address that serves probes only; empty without one.
func (c *Coordinator) ProbesAddress() string {
	if c.servers.probesListener == nil {
		return ""
	}
	return c.servers.probesListener.Addr().String()
}

// AdminAddress returns the address for profiles of the process; empty without one.
func (c *Coordinator) AdminAddress() string {
	if c.servers.admin == nil {
		return ""
	}
	return c.servers.admin.listener.Addr().String()
}

// Run serves until ctx ends or Close is called, then drains and closes everything. It
// returns an error if a server fails or the last group cannot be committed, and ErrUsed
// if it is called again.
func (c *Coordinator) Run(ctx context.Context) error {
	stopCore, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer close(c.ended)
	defer c.cancel()
	failures := make(chan error, 5) // one for each server
	stopReplicas := c.replicas.start(func(err error) { failures <- err })
	c.replicas.catchUp(c.running)
	wait := c.servers.serve(func(err error) { failures <- err })
	c.files.run(c.running)
	c.logStart()
	c.log.Info().Str("event", "serving").Str("grpc", c.GRPCAddress()).Str("http", c.HTTPAddress()).Str("probes", c.ProbesAddress()).Str("admin", c.AdminAddress()).Msg("serving")
	c.store.AppendEvents([]store.Event{{Time: time.Now(), Kind: storev1.EventKind_COORDINATOR_STARTED, Text: "hdsd " + c.ready.version}})
	failure := c.wait(failures)
	stopped := time.Now()
	c.store.AppendEvents([]store.Event{{Time: stopped, Kind: storev1.EventKind_COORDINATOR_STOPPED, Text: "stopping"}})
	c.setServing(false)
	stopReplicas() // another replica leads at once
	stopCore()
	c.mu.Lock()
	c.phase = closed
	c.mu.Unlock()
	c.feed.Stop()
	c.hds.Close()
	c.files.stop()
	c.eds.Close()
	if c.relay != nil {
		c.relay.Close()
	}
	c.csds.Close()
	c.servers.queries.Close()
	c.servers.stop()
	wait()
	if err := c.store.Close(); err != nil {
		failure = errors.Join(failure, fmt.Errorf("committing the last changes: %w", err))
	}
	c.log.Info().Str("event", "stopped").Dur("took", time.Since(stopped)).Msg("stopped")
	return failure
}

// start runs the core and the feed. It returns after the core has applied the clusters of the sources and
// published the last known health.
func (c *Coordinator) start(ctx context.Context) (stopCore func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return nil, ErrUsed
	}
	c.phase = running
	c.running, c.cancel = context.WithCancel(ctx)
	stop := make(chan struct{})
	var owned sync.WaitGroup
	owned.Go(func() { c.core.tape.run() })
	owned.Go(func() { c.core.run(stop) })
	background, cancel := context.WithCancel(context.Background())
	owned.Go(func() { c.hub.Run(background) })
	owned.Go(func() { c.query.ReadIncidents(background) })
	c.feed.Start(c.running, c.rules(c.config), func(d catalog.Delivery) {
		c.core.post(machine.Delivered{Delivery: d})
	})
	// An error means that the coordinator is stopping.
	_ = c.core.call(c.running, machine.Begun{})
	_, _ = queryCore{c.core}.Snapshot(c.running) // no query waits for the first snapshot, which takes longest
	select {
	case <-c.feed.Answered():
		_ = c.core.call(c.running, machine.Answered{})
	default:
	}
	return func() { close(stop); cancel(); owned.Wait() }, nil
}

// Reload applies another configuration, as far as possible without a restart. It returns the names of the
// changed fields that need a restart, including those of earlier reloads. With an error, nothing changes.
func (c *Coordinator) Reload(next *configv1.Config) (needRestart []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == closed {
		return nil, ErrUsed
	}
	_, needRestart = config.Changes(c.started, next)
	reloaded := config.Reloaded(c.started, next)
	if err := c.feed.Reload(next, c.rules(reloaded)); err != nil {
		return needRestart, err
	}
	c.config = reloaded
	c.ready.needsDisk.Store(reloaded.GetHistory().GetRequireWritable())
	c.ready.change()
	c.hds.SetAdmission(admission(reloaded))
	c.store.SetMaxBytes(int64(reloaded.GetHistory().GetMaxBytes()))
	c.servers.guard.SetPolicy(policyOf(reloaded))
	if c.relay != nil {
		c.relay.SetHealth(reloaded.GetRelay().GetHealth() == configv1.Relay_ON)
	}
	c.hub.Set(receivers(reloaded))
	c.core.do(func() { c.core.alarms.follow(reloaded.GetMetrics()) })
	c.store.SetRetention(reloaded.GetHistory().GetRetention().AsDuration())
	return needRestart, nil
}

// wait waits for the end of Run, or for the failure of a server. It makes hdsd ready when each source has
// answered, and updates gRPC health.
func (c *Coordinator) wait(failures <-chan error) error {
	ticker := time.NewTicker(time.Second) // a hanging disk does not signal changed
	defer ticker.Stop()
	if reason := c.feed.Waiting(); reason != "" {
		c.log.Info().Str("event", "sources_awaited").Msg("not ready yet: " + reason)
	}
	for answered := c.feed.Answered(); ; {
		select {
		case <-answered:
			answered = nil
			c.complete()
		case <-c.ready.changed:
			c.updateHealth()
		case <-ticker.C:
			c.updateHealth()
		case <-c.running.Done():
			return nil
		case err := <-failures:
			return err
		}
	}
}

// complete lets the EDS server report absent resources, and makes hdsd ready. The core already has the
// clusters of all sources.
func (c *Coordinator) complete() {
	c.core.post(machine.Answered{})
	c.setServing(true)
	if c.ready.onReady != nil {
		c.ready.onReady()
	}
	if unread := c.feed.GivenUp(); len(unread) > 0 {
		c.log.Warn().Str("event", "sources_unread").Strs("sources", unread).
			Msg("ready, although these sources have not answered: what hdsd knows of them from before the start stays in use")
	}
}

// Node returns the node of hdsd for management servers.
func Node(id, version string) *corev3.Node {
	node := &corev3.Node{Id: id, UserAgentName: "hdsd"}
	if version != "" {
		node.UserAgentVersionType = &corev3.Node_UserAgentVersion{UserAgentVersion: version}
	}
	return node
}

// policyOf compiles the access policy of a configuration. The configuration is valid already.
func policyOf(c *configv1.Config) *access.Policy {
	policy, _ := access.Compile(c.GetAccess())
	if c.GetRelay().GetForward() == configv1.Relay_AUTHORIZATION {
		policy.ForwardTokens()
	}
	return policy
}
