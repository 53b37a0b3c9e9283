package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/peer"
	"hdsd/peer/access"
	"hdsd/peer/limit"
	"hdsd/publish"
	"hdsd/source"
)

// Options are the settings of a Server.
type Options struct {
	// Services are the control plane's servers, tried in order. They are valid for
	// package source/xds.
	Services []*corev3.GrpcService
	// Aggregated leads all streams to the aggregated service of the control plane.
	Aggregated bool
	// Health turns on that hdsd puts health into clusters and assignments.
	Health bool
	// Keep is how long hdsd remembers, and checks, the resources of nodes that have gone.
	Keep time.Duration
	// Forward says which identity of a client the control plane gets.
	Forward Forward
	// Settle waits until hdsd's core has taken in the sets of the source.
	Settle func(context.Context) error
	// Checks reports whether hdsd would check a cluster once it has endpoints. Clusters that differ in
	// their names only have the same shape.
	Checks func(k *clusterv3.Cluster, shape uint64) bool

	// TakenOver reports, before a cluster has endpoints, whether clients need not check it any more; nil:
	// clients need not check what hdsd checks.
	TakenOver func(cluster string) bool

	// Remembers reports whether hdsd may know health of endpoints of a cluster that nobody has sent since
	// hdsd started, such as stored health; nil: of none.
	Remembers func(cluster string) bool

	// Stored reports whether hdsd had health of endpoints of a cluster when hdsd started; nil: of none.
	Stored func(cluster string) bool

	// Answers limits the bytes of responses on their way to clients; nil: no limit.
	Answers *limit.Room

	// Names limits the versions that clients claim to have; nil: no limit.
	Names *limit.Pool

	MaxMessageBytes     int
	MaxClusterEndpoints int
	MaxEndpoints        int // of all clusters
	Log                 zerolog.Logger
	Registerer          prometheus.Registerer // nil: there are no metrics

	// FirstRequestTimeout ends a stream without a request; 10 s by default. WriteTimeout ends a stream
	// whose peer does not read; 12 s by default. LearnTimeout ends the wait of a response for hdsd's core
	// to know its resources; 2 s by default.
	FirstRequestTimeout, WriteTimeout, LearnTimeout time.Duration
}

// Server is the relay.
type Server struct {
	// Set once.
	options   Options
	upstream  *upstream
	book      *book
	stock     *stock
	memory    *memory
	outage    *outage
	ctx       context.Context // ends with the server
	cancel    context.CancelFunc
	catalogue *catalogue
	gate      *gate.Gate
	turns     *turns
	answers   answers
	metrics   metrics
	refusing  publish.Refusing
	changes   changes
	nodes     nodes
	process   string // random; it makes the nonces of each process different
	tags      atomic.Uint64

	mu      sync.Mutex // guards streams
	streams map[*stream]struct{}
}

// errClosing ends a stream when the server closes, errEnded when the control plane has ended its stream.
var (
	errClosing = gate.ErrClosing
	errEnded   = status.Error(codes.Unavailable, "the control plane behind the relay has ended the stream")
)

// NewServer makes a relay.
func NewServer(o Options) *Server {
	o.FirstRequestTimeout = cmp.Or(o.FirstRequestTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 12*time.Second)
	o.LearnTimeout = cmp.Or(o.LearnTimeout, 2*time.Second)
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails
	s := &Server{
		options: o, upstream: &upstream{services: o.Services, maxBytes: o.MaxMessageBytes}, book: newBook(o.Health),
		stock: newStock(o.MaxClusterEndpoints, o.MaxEndpoints, o.Remembers), gate: gate.New(), turns: newTurns(o.Log), answers: answers{room: o.Answers, runs: map[uint64]*run{}}, process: hex.EncodeToString(id), streams: map[*stream]struct{}{},
	}
	s.book.changed, s.memory = s.notify, newMemory(s.stock, o.Keep)
	s.outage = &outage{server: s}
	s.metrics = newMetrics(s, o.Registerer)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var targets []string
	for _, svc := range o.Services {
		targets = append(targets, svc.GetGoogleGrpc().GetTargetUri())
	}
	s.catalogue = newCatalogue(s, strings.Join(targets, ", "))
	return s
}

// Source returns the source of the clusters and endpoints that nodes have.
func (s *Server) Source() interface {
	Latest() *source.Set
	Run(context.Context, func(*source.Set)) error
} {
	return s.catalogue
}

// Health returns the receiver of published health.
func (s *Server) Health() interface {
	Update(publish.Update)
	SetHealth([]publish.Health)
	SetZoneHealth(zone health.Locality, set []publish.Health, unset []health.EndpointID)
} {
	return s.book
}

// SetHealth turns health on or off, for all streams at once.
func (s *Server) SetHealth(enabled bool) {
	if s.book.setEnabled(enabled) {
		s.notify(nil)
	}
}

// Close ends all streams with UNAVAILABLE and waits for them.
func (s *Server) Close() {
	s.cancel()
	s.gate.Close()
}

// serve relays a stream.
func (s *Server) serve(gs grpc.ServerStream, m method) error {
	if !s.gate.Enter() {
		return errClosing
	}
	defer s.gate.Leave()
	if !access.FromContext(gs.Context()).Clusters().All() {
		return status.Error(codes.PermissionDenied,
			"the relay passes on all that the control plane says: it needs DATA_PLANE of a grant without cluster_name_glob")
	}
	if err := s.checkForwarded(gs.Context()); err != nil {
		return err
	}
	_, _, next := s.changes.since(0)
	st := &stream{server: s, seenChange: next, caller: peer.FromContext(gs.Context()).Key(), client: gs, method: m, opened: time.Now(), inbox: make(chan arrival), wake: make(chan struct{}, 1), failure: make(chan error, 1)}
	return st.run()
}

func (s *Server) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
}

func (s *Server) remove(st *stream) {
	s.mu.Lock()
	delete(s.streams, st)
	s.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, t := range st.types {
		s.refusing.Forget(t)
	}
}

// Refusing returns the clients that refuse a response at present, in any order.
func (s *Server) Refusing() []publish.Refuser { return s.refusing.All() }

// notify tells the streams which resources may have changed; nil: all.
func (s *Server) notify(subjects []subject) {
	s.changes.add(subjects, int(s.stock.names.Load()))
	for _, st := range s.openStreams() {
		st.wakeUp()
	}
}

// openStreams lists the streams.
func (s *Server) openStreams() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// newNoncePrefix returns the prefix of hdsd's own nonces on a stream.
func (s *Server) newNoncePrefix() string {
	return "hdsd-" + s.process + "-" + strconv.FormatUint(s.tags.Add(1), 36) + "-"
}

// expects reports whether hdsd will check a cluster whose endpoints hdsd does not know (undecided). own is
// hdsd's name of the cluster.
func (s *Server) expects(x *body, own string) (check, undecided bool) {
	if own == "" || s.stock.decided(own, x.name) {
		return false, false
	}
	if !x.eds || x.foreign || x.refusal() != "" {
		return false, false
	}
	if check = s.willCheck(x) && (s.options.TakenOver == nil || s.options.TakenOver(own)); check {
		s.stock.promise(x.name, time.Now())
	}
	return check, true
}

// willCheck reports whether hdsd would check a cluster with endpoints. The caller holds the lock of the
// body's overlays.
func (s *Server) willCheck(x *body) bool {
	if x.overlays.expected == notKnown {
		x.overlays.expected = wontCheck
		if s.options.Checks(x.cluster(), x.shape) {
			x.overlays.expected = willCheck
		}
	}
	return x.overlays.expected == willCheck
}
