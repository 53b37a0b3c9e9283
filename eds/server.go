package eds

import (
	"cmp"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/eds/poll"
	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/internal/rest"
	"hdsd/peer/access"
	"hdsd/peer/limit"
	"hdsd/publish"
)

// Server is the xDS server for data planes.
type Server struct {
	// Set once.
	identifier       string
	maxBodyBytes     int
	bodies           *rest.Budget
	maxResponseBytes int
	firstTimeout     time.Duration
	writeTimeout     time.Duration
	zoning           zoning
	fewestShared     int
	names            *limit.Pool // nil: unbounded

	// Each of these guards itself.
	published *publication
	limiter   *limiter
	recorder  *recorder
	gate      *gate.Gate
	streams   *streams
	admission admission
	polls     *poll.Tracker
	unasked   *unaskedCounter
	fetcher   *fetcher
}

// NewServer makes a server that publishes nothing yet. Clients take a missing resource for
// removed, so register the server after the first Update, or begin with Options.Incomplete.
func NewServer(o Options) *Server {
	published := newPublication(&o)
	s := &Server{
		identifier:       o.Identifier,
		maxBodyBytes:     cmp.Or(o.MaxBodyBytes, 64<<20),
		bodies:           o.Bodies,
		names:            o.Names,
		maxResponseBytes: cmp.Or(o.MaxResponseBytes, 1<<20),
		firstTimeout:     cmp.Or(o.FirstRequestTimeout, 10*time.Second),
		writeTimeout:     cmp.Or(o.WriteTimeout, 12*time.Second),
		zoning:           zoning{byLocator: o.ZoneVariants, byLocality: o.ZoneByLocality},
		fewestShared:     cmp.Or(o.fewestShared, 16),
		published:        published,
		limiter:          &limiter{maxNames: cmp.Or(o.MaxNames, 50_000), published: published},
		recorder:         &recorder{log: o.Log, metrics: newMetrics()},
		gate:             gate.New(),
		streams:          new(streams),
		admission:        admission{free: cmp.Or(o.FirstSyncs, 64)},
		polls:            poll.NewTracker(poll.DefaultBytes),
	}
	s.unasked = &unaskedCounter{published: published, recorder: s.recorder, gate: s.gate, streams: s.streams, polls: s.polls}
	for _, t := range published.tables() {
		t.counts = s.recorder.metrics.forType(t.typeURL)
	}
	s.fetcher = newFetcher(s)
	if o.Metrics != nil {
		s.recorder.metrics.register(o.Metrics, s)
	}
	return s
}

// Update changes the published resources. A resource that cannot be encoded is logged, and keeps
// its previous version. If a cluster and its assignment are new, a client that gets the cluster
// finds the assignment published.
func (s *Server) Update(u publish.Update) {
	for _, err := range s.published.update(&u) {
		s.recorder.unencodable(err)
	}
}

// SetHealth changes the health of endpoints, whether or not an assignment has them yet. An
// endpoint never set is Unknown.
func (s *Server) SetHealth(changes []publish.Health) { s.published.setHealth(changes) }

// SetZoneHealth changes the health of endpoints as a zone sees it. Clients that ask for
// the zone's region and name get it; without a region, those that ask for the name alone.
// Endpoints that are not set have the health of SetHealth. An endpoint that is gone has to
// be unset. A zone need not be declared. The cost is that of the endpoints set, and of
// their variants that clients watch.
func (s *Server) SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID) {
	s.published.setZoneHealth(zone, set, unset)
}

// Complete ends Options.Incomplete: resources that are not published do not exist. Clients that
// wait for that answer get it.
func (s *Server) Complete() {
	s.published.complete(func() {
		for _, st := range s.streams.list() {
			for _, u := range st.subscriptions() {
				u.requeueWithheld()
			}
			st.wakeUp()
		}
	})
}

// Close ends all streams with UNAVAILABLE and waits for them.
func (s *Server) Close() { s.gate.Close() }

// serve handles a stream of one table, or of all (nil).
func (s *Server) serve(gs grpc.ServerStream, delta bool, table *table) error {
	if !s.gate.Enter() {
		return gate.ErrClosing
	}
	defer s.gate.Leave()
	st := &stream{
		server: s, grpc: gs, delta: delta, table: table, start: time.Now(), permitted: access.FromContext(gs.Context()).Clusters(),
		wake: make(chan struct{}, 1), end: make(chan error, 1),
	}
	if err := st.takeNames(); err != nil {
		return err
	}
	defer st.names.Release()
	s.streams.add(st)
	defer s.streams.remove(st)
	first := time.AfterFunc(s.firstTimeout, func() {
		s.recorder.idle(st)
		st.fail(status.Errorf(codes.DeadlineExceeded, "no request within %v: send one", s.firstTimeout))
	})
	defer first.Stop()
	s.gate.Go(func() { st.receive(first) })
	s.gate.Go(st.send)
	select {
	case err := <-st.end:
		return err
	case <-gs.Context().Done(): // also when its authority is withdrawn
		return status.FromContextError(gs.Context().Err()).Err()
	case <-s.gate.Closing():
		return gate.ErrClosing
	}
}
