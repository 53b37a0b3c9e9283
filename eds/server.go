package eds

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/gate"
)

// Server is the xDS server for data planes.
type Server struct {
	identifier       string
	log              zerolog.Logger
	maxNames         int // that a subscription may have, however few resources there are
	maxBodyBytes     int
	maxResponseBytes int
	firstTimeout     time.Duration
	writeTimeout     time.Duration
	zoneVariants     bool
	zoneByLocality   bool
	metrics          *metrics
	clusters         *table
	assignments      *table

	owner  sync.Mutex // of what is published
	ledger ledger     // guarded by owner

	incomplete atomic.Bool // what is not published may exist all the same

	start   time.Time    // Server.now counts from here
	changed atomic.Int64 // when what is published was changed last, by now

	admission admission

	turns   chan struct{} // holds one for each fetch that is worked on
	gate    *gate.Gate
	mu      sync.Mutex // guards what follows
	streams map[*stream]struct{}
	lastID  uint64

	refusals refusals
	parked   refusals // of types that are not served
	debtors  debtors
	pollers  *pollers
}

// NewServer makes a server that publishes nothing yet. Clients take what is not
// there for removed: register it when the first Update is in, or begin with
// Options.Incomplete.
func NewServer(o Options) *Server {
	s := &Server{
		identifier:       o.Identifier,
		log:              o.Log,
		maxNames:         cmp.Or(o.MaxNames, 50_000),
		maxBodyBytes:     cmp.Or(o.MaxBodyBytes, 64<<20),
		maxResponseBytes: cmp.Or(o.MaxResponseBytes, 1<<20),
		firstTimeout:     cmp.Or(o.FirstRequestTimeout, 30*time.Second),
		writeTimeout:     cmp.Or(o.WriteTimeout, 30*time.Second),
		zoneVariants:     o.ZoneVariants,
		zoneByLocality:   o.ZoneByLocality,
		clusters:         newTable(resourcev3.ClusterType, true, o.TTL[resourcev3.ClusterType]),
		assignments:      newTable(resourcev3.EndpointType, false, o.TTL[resourcev3.EndpointType]),
		admission:        admission{free: cmp.Or(o.FirstSyncs, 64)},
		ledger:           newLedger(),
		start:            time.Now(),
		turns:            make(chan struct{}, atOnce),
		gate:             gate.New(),
		streams:          make(map[*stream]struct{}),
		pollers:          newPollers(),
	}
	s.incomplete.Store(o.Incomplete)
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
		s.clusters.set(c.Message.GetName(), r).notify()
	}
	for _, slot := range changed {
		slot.notify()
		s.renew(slot)
	}
	for _, name := range u.RemovedClusters {
		remove(s.clusters, name)
	}
	for _, name := range u.RemovedAssignments {
		s.ledger.remove(name)
		if slot := remove(s.assignments, name); slot != nil {
			s.renew(slot)
		}
	}
}

func (s *Server) putAssignment(a *Assignment) *slot {
	r, endpoints, err := newAssignment(a, s.ledger.status)
	if err != nil {
		s.complain(err)
		return nil
	}
	for _, v := range s.assignments.variants(a.Name) {
		v.forgetOwn()
	}
	slot := s.assignments.set(a.Name, r)
	s.ledger.put(a.Name, slot, endpoints)
	return slot
}

func remove(t *table, name string) *slot {
	slot := t.set(name, nil)
	if slot != nil {
		slot.notify()
	}
	return slot
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
	var variants []*slot
	for _, slot := range s.ledger.set(changes, func(p place, changed bool) { variants = s.follow(variants, p, changed) }) {
		slot.notify()
	}
	notifyOnce(variants)
}

// now is the time since the start, never 0.
func (s *Server) now() int64 { return int64(time.Since(s.start)) + 1 }

// Close ends all streams with UNAVAILABLE and waits for them.
func (s *Server) Close() { s.gate.Close() }

// serve is the handler of every stream: of one table, or of all of them (nil).
func (s *Server) serve(gs grpc.ServerStream, delta bool, only *table) error {
	st := &stream{
		server: s, grpc: gs, delta: delta, only: only, since: time.Now(),
		wake: make(chan struct{}, 1), end: make(chan error, 1),
	}
	if !s.enter(st) {
		return gate.ErrClosing
	}
	defer s.exit(st)
	first := time.AfterFunc(s.firstTimeout, func() {
		st.fail(status.Errorf(codes.DeadlineExceeded, "no request within %v: send one", s.firstTimeout))
	})
	defer first.Stop()
	s.gate.Go(func() { st.receive(first) })
	s.gate.Go(st.send)
	select {
	case err := <-st.end:
		return err
	case <-s.gate.Closing():
		return gate.ErrClosing
	}
}

func (s *Server) enter(st *stream) bool {
	if !s.gate.Enter() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	st.id = s.lastID
	s.streams[st] = struct{}{}
	return true
}

func (s *Server) exit(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
	s.gate.Leave()
}
