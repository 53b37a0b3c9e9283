package eds

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
)

// Options say how a Server works. Every field but Identifier has a default.
type Options struct {
	// Identifier is what clients are told in control_plane.identifier.
	Identifier string
	Log        zerolog.Logger
	// Metrics takes the server's metrics; nil: none are kept for anyone.
	Metrics prometheus.Registerer
	// MaxNames is how many names one subscription may have, 50,000 by default;
	// they may have 256 bytes each on the average. Beyond it, a stream ends
	// with RESOURCE_EXHAUSTED.
	MaxNames int
	// MaxResponseBytes is the size past which a response of changes is split,
	// 1 MiB by default; one resource is never split.
	MaxResponseBytes int
	// FirstRequestTimeout is how long a stream may be open without a request;
	// 30 s by default. It ends then.
	FirstRequestTimeout time.Duration
	// WriteTimeout is how long a client may leave a response unread while
	// there is no room to write it; 30 s by default. The stream ends then.
	WriteTimeout time.Duration
}

// Assignment is one ClusterLoadAssignment to be published.
type Assignment struct {
	// Name is what it is published as, whatever the message says.
	Name string
	// Message is as the source gave it. It must not change any more.
	Message *endpointv3.ClusterLoadAssignment
	// IDs says, per locality and lb endpoint, which verdicts decide its
	// health: the worst of them. Where there are none, the endpoint passes
	// through as it is. They must not change any more.
	IDs [][][]health.EndpointID
}

// Update is a change of what is published. Clusters are as they shall go out
// (see PublishCluster).
type Update struct {
	Assignments        []Assignment
	RemovedAssignments []string
	Clusters           []*clusterv3.Cluster
	RemovedClusters    []string
}

// Health is what to publish of one endpoint.
type Health struct {
	ID     health.EndpointID
	Status health.Status
}

// Server is the xDS server for data planes.
type Server struct {
	identifier       string
	log              zerolog.Logger
	limits           limits
	maxResponseBytes int
	firstTimeout     time.Duration
	writeTimeout     time.Duration
	metrics          *metrics
	clusters         *table
	assignments      *table

	owner  sync.Mutex // of what is published
	ledger ledger     // guarded by owner

	start   time.Time    // Server.now counts from here
	changed atomic.Int64 // when what is published was changed last, by now

	turns   chan struct{} // holds one for each fetch that is worked on
	closing chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex // guards what follows
	closed  bool
	streams map[*stream]struct{}
	lastID  uint64
}

// NewServer makes a server that publishes nothing yet. Register it when the
// first Update is in: clients take what is not there for removed.
func NewServer(o Options) *Server {
	names := cmp.Or(o.MaxNames, 50_000)
	s := &Server{
		identifier:       o.Identifier,
		log:              o.Log,
		limits:           limits{names: names, bytes: 256 * names},
		maxResponseBytes: cmp.Or(o.MaxResponseBytes, 1<<20),
		firstTimeout:     cmp.Or(o.FirstRequestTimeout, 30*time.Second),
		writeTimeout:     cmp.Or(o.WriteTimeout, 30*time.Second),
		clusters:         newTable(ClusterType, true),
		assignments:      newTable(AssignmentType, false),
		ledger:           newLedger(),
		start:            time.Now(),
		turns:            make(chan struct{}, atOnce),
		closing:          make(chan struct{}),
		streams:          make(map[*stream]struct{}),
	}
	s.metrics = newMetrics(s, o.Metrics)
	return s
}

// tables gives them in the order in which changes are sent.
func (s *Server) tables() [2]*table { return [2]*table{s.clusters, s.assignments} }

// Update changes what is published. A resource that cannot be encoded stays as
// it was and is logged. Where a cluster and its assignment are new, a client
// that is told of the cluster finds the assignment there.
func (s *Server) Update(u Update) {
	s.owner.Lock()
	defer s.owner.Unlock()
	s.changed.Store(s.now())

	var changed []*slot
	for i := range u.Assignments {
		if slot := s.putAssignment(&u.Assignments[i]); slot != nil {
			changed = append(changed, slot)
		}
	}
	for _, c := range u.Clusters {
		r, err := newCluster(c)
		if err != nil {
			s.complain(err)
			continue
		}
		s.clusters.set(c.GetName(), r).notify()
	}
	for _, slot := range changed {
		slot.notify()
	}
	for _, name := range u.RemovedClusters {
		remove(s.clusters, name)
	}
	for _, name := range u.RemovedAssignments {
		s.ledger.remove(name)
		remove(s.assignments, name)
	}
}

func (s *Server) putAssignment(a *Assignment) *slot {
	r, endpoints, err := newAssignment(a, s.ledger.status)
	if err != nil {
		s.complain(err)
		return nil
	}
	slot := s.assignments.set(a.Name, r)
	s.ledger.put(a.Name, slot, endpoints)
	return slot
}

func remove(t *table, name string) {
	if slot := t.set(name, nil); slot != nil {
		slot.notify()
	}
}

func (s *Server) complain(err error) {
	s.metrics.unencodable.Inc()
	s.log.Error().Str("event", "resource_not_published").Err(err).Msg("a resource cannot be published; what was published before stays")
}

// SetHealth changes the health of endpoints, whether an assignment has them yet
// or not. An endpoint never set is Unknown.
func (s *Server) SetHealth(changes []Health) {
	s.owner.Lock()
	defer s.owner.Unlock()
	s.changed.Store(s.now())
	for _, slot := range s.ledger.set(changes) {
		slot.notify()
	}
}

// now is the time since the start, never 0.
func (s *Server) now() int64 { return int64(time.Since(s.start)) + 1 }

// Close ends all streams with UNAVAILABLE and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.running.Wait()
}

var errClosing = status.Error(codes.Unavailable, "hdsd is shutting down; connect again")

// serve is the handler of every stream: of one table, or of all of them (nil).
func (s *Server) serve(gs grpc.ServerStream, delta bool, only *table) error {
	st := &stream{
		server: s, grpc: gs, delta: delta, only: only, since: time.Now(),
		wake: make(chan struct{}, 1), end: make(chan error, 1),
	}
	if !s.enter(st) {
		return errClosing
	}
	defer s.exit(st)
	first := time.AfterFunc(s.firstTimeout, func() {
		st.fail(status.Errorf(codes.DeadlineExceeded, "no request within %v: send one", s.firstTimeout))
	})
	defer first.Stop()
	s.running.Go(func() { st.receive(first) })
	s.running.Go(st.send)
	select {
	case err := <-st.end:
		return err
	case <-s.closing:
		return errClosing
	}
}

func (s *Server) enter(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	s.lastID++
	st.id = s.lastID
	s.streams[st] = struct{}{}
	return true
}

func (s *Server) exit(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
	s.running.Done()
}
