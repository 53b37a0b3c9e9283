package coordinator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"hdsd/coordinator/union"
	configv1 "hdsd/gen/hdsd/config/v1"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/log"
	"hdsd/log/etcd"
	"hdsd/machine"
	"hdsd/peer/limit/inflight"
	"hdsd/replica"
	"hdsd/replica/engine"
	"hdsd/replica/link"
	"hdsd/replica/maintenance"
	"hdsd/store"
)

// maxPeerStreams bounds the calls of a connection of another replica. Further ones wait.
const maxPeerStreams = 100

// replicas holds the session of this replica at etcd, and what joins it to the other replicas. Nil is a coordinator
// alone.
type replicas struct {
	config     *configv1.Config
	version    string
	started    time.Time
	log        zerolog.Logger
	registerer prometheus.Registerer
	changed    func() // wakes the readiness

	process  uint64 // a random number
	listener net.Listener
	engine   *engine.Engine
	links    *link.Links
	*peers
	probe   *leaderProbe
	server  *grpc.Server
	members members

	accepted acceptances

	// Set before start.
	union *union.Backend
	core  *core
	store *store.Store
	place engine.Place

	awaited atomic.Int64 // position that the replica has to reach to be ready; negative: unknown
}

// openReplicas listens for other replicas, and opens the session at etcd. It waits for neither.
func openReplicas(c *Coordinator) (r *replicas, err error) {
	conf := c.started.GetReplication()
	if conf == nil {
		return nil, nil
	}
	r = &replicas{
		config: c.started, version: c.ready.version, started: c.ready.start, log: c.log, registerer: c.registry, changed: c.ready.change,
		process: rand.Uint64(), store: c.store,
	}
	r.awaited.Store(-1)
	if err = r.open(conf, c.servers); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *replicas) open(conf *configv1.Replication, s *servers) (err error) {
	if r.listener, err = listenAt("replication.peer.address", conf.GetPeer().GetAddress()); err != nil {
		return err
	}
	listens := &configv1.Listener{Address: conf.GetPeer().GetAddress(), Tls: conf.GetPeer().GetTls(), Insecure: conf.GetPeer().GetInsecure()}
	watched, err := s.watch("replication.peer", r.listener, r.config.GetLimits(), listens, "h2")
	if err != nil {
		return err
	}
	server, client := insecure.NewCredentials(), insecure.NewCredentials()
	if r.listener = watched; watched.tls != nil {
		server, client = credentials.NewTLS(watched.tls.Config()), credentials.NewTLS(watched.tls.Peer())
	}
	r.peers = newPeers(client)
	r.links = link.New(link.Options{
		ID: r.config.GetNodeId(), Process: r.process, Version: r.version, Log: r.log, Credentials: client, Registerer: r.registerer,
	}, func(e replica.Event) {
		r.probe.observe(e)
		r.core.postShared(r.core.events, e)
	})
	bytes := inflight.NewBudget(2 * link.MaxMessage) // half of it for large ones
	bytes.Largest, bytes.LargestField = link.MaxMessage, "MaxMessage of replica/link"
	r.server = grpc.NewServer(append(append(link.ServerOptions(), grpc.MaxConcurrentStreams(maxPeerStreams)), bytes.ServerOptions(server)...)...)
	r.links.Register(r.server)
	replicav1.RegisterPeersServer(r.server, newPeerService(r))
	options := engine.Options{Post: func(e replica.Event) { r.core.postShared(r.core.entries, e) }, Joined: r.joined, Viewed: r.viewed}
	if options.Etcd, err = r.etcdOptions(); err != nil {
		return err
	}
	if r.engine, err = engine.Open(options); err == nil {
		r.probe = newLeaderProbe(r.engine)
		r.register(promauto.With(r.registerer))
	}
	return err
}

// register registers the metrics.
func (r *replicas) register(f promauto.Factory) {
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	gauge("hdsd_replica_leads", "1 while this replica leads, else 0.", func() float64 { return flag(r.core.replication.leads()) })
	gauge("hdsd_replica_epoch", "Epoch of the leader that this replica knows; 0 without one.", func() float64 {
		view, _ := r.engine.View()
		return float64(view.Epoch)
	})
	gauge("hdsd_replica_position", "Sequence of the latest entry of the log that this replica has published.", func() float64 {
		return float64(r.core.replication.state.Load().position)
	})
	gauge("hdsd_replica_etcd_connected", "1 while etcd answers this replica, else 0.", func() float64 {
		status, _ := r.engine.Status()
		return flag(status.Connected)
	})
}

// etcdOptions returns the options of the session at etcd.
func (r *replicas) etcdOptions() (etcd.Options, error) {
	o, err := maintenance.Options(r.config)
	o.Version, o.Started, o.Log = r.version, r.started, r.log
	if o.Address == "" {
		o.Address = r.listener.Addr().String()
	}
	return o, err
}

// viewed takes a change of the replicas. While another process has the id of this one, this one calls no replica: it
// would replace the links of the other process.
func (r *replicas) viewed(v *etcd.View) {
	others, double := map[string]string{}, false
	for i := range v.Members {
		if m := &v.Members[i]; m.ID != r.config.GetNodeId() {
			others[m.ID] = m.Address
		} else {
			double = !m.Started.Equal(r.started)
		}
	}
	r.members.observe(time.Now(), v)
	if v.Leader != "" && v.Leader != r.config.GetNodeId() {
		r.core.do(r.core.alarms.handOver)
	}
	r.setMembers(others)
	if double {
		others = nil
	}
	r.links.SetMembers(others)
}

// placeOf returns where the database goes on with the log.
func (r *replicas) placeOf(state *log.State) engine.Place {
	cursor := r.store.Cursor()
	if cursor.Diverged || cursor.Fleet == "" && !state.IsEmpty() {
		return engine.Place{Fleet: r.fleetID(&cursor), Cursor: cursor.Sequence + 1, Found: true}
	}
	return engine.Place{Fleet: cursor.Fleet, Cursor: cursor.Sequence, Digest: cursor.Digest}
}

// fleetID returns the id of a fleet that begins with the history of this database. It is the same after a restart, so
// that a founding whose answer is lost can be repeated.
func (r *replicas) fleetID(cursor *store.Cursor) string {
	began, _ := r.store.Began() // zero with an error
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %d", r.config.GetNodeId(), began.UnixNano(), cursor.Fleet, cursor.Sequence))
	return fmt.Sprintf("%x", sum[:16])
}

// join makes the core one of the replicas, before it runs.
func (r *replicas) join(c *core, state *log.State, timing machine.Timing) {
	if r == nil {
		return
	}
	r.core, r.place = c, r.placeOf(state)
	c.join(replica.Options{
		ID: r.config.GetNodeId(), Process: r.process, Timing: timing, CommitInterval: r.config.GetReplication().GetCommitInterval().AsDuration(),
		MaxPayload: etcd.MaxPayload,
	}, state.Clone(), r.place.Cursor, r.store, r.engine, r.links)
}

// joined stores the fleet. The replica is ready when it has what the log has now.
func (r *replicas) joined(ctx context.Context, fleet string, cursor, head uint64) error {
	if stored := r.store.Cursor(); stored.Fleet != fleet || stored.Diverged { // otherwise entries on their way to the disk move it
		if err := r.store.SetFleet(ctx, fleet, cursor); err != nil {
			return fmt.Errorf("the database does not accept the fleet: %w", err)
		}
	}
	r.awaited.Store(int64(head))
	r.changed()
	return nil
}

// start runs the replica in the background. The returned function ends the session and the links. Both do nothing
// without replicas.
func (r *replicas) start(failed func(error)) (stop func()) {
	if r == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var owned sync.WaitGroup
	owned.Go(func() { r.run(ctx, failed) })
	return func() { cancel(); owned.Wait() }
}

// run serves the other replicas and follows the log, until ctx ends.
func (r *replicas) run(ctx context.Context, failed func(error)) {
	var owned sync.WaitGroup
	owned.Go(func() {
		if err := r.server.Serve(r.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			failed(fmt.Errorf("serving replicas: %w", err))
		}
	})
	if err := r.engine.Run(ctx, r.place); err != nil {
		if errors.Is(err, etcd.ErrTrimmed) {
			failed(fmt.Errorf("this replica was away for too long, and copies the database of another one when it starts again: %w", err))
		}
		<-ctx.Done()
	}
	r.close()
	owned.Wait()
}

// close ends the session and the links, if there are any.
func (r *replicas) close() {
	if r == nil {
		return
	}
	if r.engine != nil {
		_ = r.engine.Close() // the session ends with its TTL otherwise
	}
	if r.links != nil {
		r.links.Close()
		r.peers.close()
	}
	if r.probe != nil {
		r.probe.close() // no link ends any more
	}
	if r.server != nil {
		r.server.Stop()
	}
	if r.listener != nil {
		_ = r.listener.Close() // the server may have closed it
	}
}

const (
	// catchUpPatience is how long a start waits until the replica has read the log. While etcd does not answer, it waits until
	// startPatience has passed since the start of the process.
	catchUpPatience = 30 * time.Second

	catchUpPause = 5 * time.Millisecond
)

// catchUp waits for the health that the log has, so that data planes get no older one at first.
func (r *replicas) catchUp(ctx context.Context) {
	if r == nil {
		return
	}
	for begin := time.Now(); r.notReady() != "" && time.Since(begin) < catchUpPatience; {
		status, _ := r.engine.Status()
		isAway := !status.Connected && time.Since(r.started) >= startPatience
		if isAway || lasting(status.Problems, time.Now()).Reason != "" || r.core.replication.state.Load().fault != nil {
			return
		}
		select {
		case <-time.After(catchUpPause):
		case <-ctx.Done():
			return
		}
	}
}

// notReady returns the reason why the replica does not have the health of the log yet; empty if it has.
func (r *replicas) notReady() string {
	if r == nil {
		return ""
	}
	state, awaited := r.core.replication.state.Load(), r.awaited.Load()
	switch {
	case state.fault != nil:
		return "this replica cannot follow the log: " + state.fault.Error()
	case awaited < 0:
		return "etcd has not answered yet" + r.trouble()
	case state.position < uint64(awaited):
		return fmt.Sprintf("this replica reads the log: it has %d of %d entries", state.position, awaited)
	}
	return ""
}

// trouble returns the oldest problem with etcd, after a colon.
func (r *replicas) trouble() string {
	status, _ := r.engine.Status()
	if len(status.Problems) == 0 {
		return ""
	}
	return ": " + status.Problems[0].Err.Error()
}
