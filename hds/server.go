package hds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"

	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
)

// Sink is told what checkers do. It is called from goroutines of the streams
// and of those that fetch, for each checker one call at a time; it may block for back-pressure, but has
// to return for Server.Close to return.
type Sink interface {
	// Connected tells that a stream, the first or one that replaces another,
	// is up, or that a node has fetched that had no stream. Nothing is sent on it before this returns and something was
	// assigned; assignments from before the call may still be sent after it,
	// so that it is to return only when c is taken note of.
	Connected(c health.Checker)

	// Disconnected tells that the checker has no stream any more, or has not
	// fetched for three intervals.
	Disconnected(id string)

	// Reported tells that a checker was heard, and what it says that it did
	// not say before: everything in the first report that follows a specifier,
	// nil where nothing changed. The votes are the sink's to keep.
	Reported(id string, votes []health.Vote)
}

// The values of State.Specifier.
const (
	NotSent = "NOT_SENT" // what was assigned was not sent yet, or not all of it
	Sent    = "SENT"     // reports do not follow it yet
	Synced  = "SYNCED"   // a report has listed exactly what was assigned
)

// State is what is known of a checker's stream, or of its fetches.
type State struct {
	Connected      bool
	Specifier      string    // NotSent, Sent or Synced
	Followed       bool      // a report has listed exactly what was sent, now or before
	LastReport     time.Time // zero where there was none on this stream
	StrangeReports uint64    // reported endpoints that it was not assigned
	Silent         bool      // for three intervals it reported nothing of what it was sent first
	Reason         string    // what that means; empty where it is not silent
}

// Server serves health discovery to checkers.
type Server struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer

	// Set once.
	options Options
	sink    Sink
	metrics *metrics
	start   time.Time  // stream times count from here, monotonic
	gate    *gate.Gate // of handlers and the goroutines of streams

	mu      sync.Mutex
	streams map[string]*stream // the one of each node id
}

// NewServer gives a server that is to be registered with a grpc.Server made
// with ServerOptions.
func NewServer(o Options, sink Sink) *Server {
	o = o.withDefaults()
	m, collectors := newMetrics()
	if o.Registerer != nil {
		o.Registerer.MustRegister(collectors...)
	}
	return &Server{
		options: o, sink: sink, metrics: m, start: time.Now(),
		gate: gate.New(), streams: make(map[string]*stream),
	}
}

// Register makes r serve health discovery, v3 and v2.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	healthv3.RegisterHealthDiscoveryServiceServer(r, s)
	discoveryv2.RegisterHealthDiscoveryServiceServer(r, &serviceV2{server: s})
}

// Assign sets what a checker is to check; the latest wins. It does not wait.
// Without a stream of that id it does nothing: assign when Connected was
// called. A nil specifier takes back one that was not sent yet. The specifier
// must not be changed afterwards.
func (s *Server) Assign(id string, spec *specifier.Specifier) {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	if st != nil {
		st.assign(spec)
	}
}

// Checkers gives the connected ones, by id.
func (s *Server) Checkers() []health.Checker {
	s.mu.Lock()
	all := make([]health.Checker, 0, len(s.streams))
	for _, st := range s.streams {
		all = append(all, st.checker)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b health.Checker) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// State tells how the stream of a checker fares.
func (s *Server) State(id string) State {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	if st == nil {
		return State{Specifier: NotSent}
	}
	return st.state()
}

// Close ends all streams with UNAVAILABLE, refuses new ones and waits until no
// goroutine is left. The sink is called until it returns.
func (s *Server) Close() { s.gate.Close() }

// now is the time since start, for the atomics of streams.
func (s *Server) now() int64 { return int64(time.Since(s.start)) }
