package hds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"

	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
)

// Sink is notified of the checkers' connections and reports. The goroutines of the sessions call
// it, for each checker one call at a time. It may block for back-pressure, but has to return for
// Server.Close to return.
type Sink interface {
	// Connected: the checker has a stream, its first or a replacement, or fetches and had no
	// stream. The server sends nothing before Connected returns and something is assigned. It
	// may still send an assignment made before the call, so return only when c is known.
	Connected(c health.Checker)

	// Disconnected: the checker no longer has a stream, or has not fetched for three intervals.
	// If the server itself ended its connection by plan, the call comes later, and not at all if
	// the checker has another stream by then.
	Disconnected(id string)

	// Ended: the server itself ends the stream of the checker, whose process goes on.
	// Disconnected follows, or Connected if the checker has another stream by then.
	Ended(id string)

	// Accepted: for the first time a report has listed exactly the endpoints of s. Reported
	// follows for that report. For a checker that speaks v2, s is the sent part of the assigned
	// specifier.
	Accepted(id string, s *specifier.Specifier)

	// Reported: the checker sent a report. Votes are its changes: all votes in the first report
	// that follows a specifier, nil if nothing changed. The sink may keep them. There is no call
	// for a report that repeats the one before within a tenth of an interval of the latest call.
	Reported(id string, votes []health.Vote)

	// Silent: for three intervals since the first non-empty specifier, the checker has reported
	// nothing of it, as an Envoy does that rejected it. With false: it reports after all.
	// Heartbeats do not count. Connected and Disconnected end silence as well, without this
	// call.
	Silent(id string, silent bool)
}

// Values of State.Specifier.
const (
	NotSent = "NOT_SENT" // the assignment was not sent yet, or not all of it
	Sent    = "SENT"     // reports do not follow it yet
	Synced  = "SYNCED"   // a report has listed exactly the assigned endpoints
)

// State is the server's knowledge of a checker.
type State struct {
	Connected      bool
	Specifier      string    // NotSent, Sent or Synced
	Followed       bool      // a report has listed exactly the sent endpoints, now or before
	LastReport     time.Time // zero without one on this stream
	StrangeReports uint64    // reported endpoints that were not assigned
	Silent         bool      // for three intervals it reported nothing of its first specifier
	Reason         string    // explains silence; empty if it is not silent
}

// Server serves health discovery to checkers.
type Server struct {
	healthv3.UnimplementedHealthDiscoveryServiceServer

	// Set once.
	options Options
	sink    Sink
	metrics *metrics
	start   time.Time  // stream times count from here, monotonic
	gate    *gate.Gate // for handlers and the goroutines of sessions

	pace logPace

	mu       sync.Mutex
	sessions map[string]*session // by node id
	door     door
}

// NewServer makes a server. Register it with a grpc.Server that has ServerOptions.
func NewServer(o Options, sink Sink) *Server {
	o = o.withDefaults()
	m, collectors := newMetrics()
	if o.Registerer != nil {
		o.Registerer.MustRegister(collectors...)
	}
	return &Server{
		options: o, sink: sink, metrics: m, start: time.Now(),
		gate: gate.New(), sessions: make(map[string]*session), door: newDoor(&o),
	}
}

// Register makes r serve health discovery, v3 and v2.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	r.RegisterService(unary(s, healthv3.HealthDiscoveryService_ServiceDesc, s.fetch), s)
	r.RegisterService(unary(s, discoveryv2.HealthDiscoveryService_ServiceDesc, s.fetchV2), &serviceV2{server: s})
}

// Assign sets the specifier of a checker. The latest one wins. Assign does not wait. It does
// nothing if the checker is not connected, so assign after Connected. A nil specifier withdraws
// one that was not sent yet. Do not change the specifier afterwards.
func (s *Server) Assign(id string, spec *specifier.Specifier) {
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	if session != nil {
		session.pending.set(spec)
	}
}

// Checkers lists the connected checkers, by id.
func (s *Server) Checkers() []health.Checker {
	s.mu.Lock()
	checkers := make([]health.Checker, 0, len(s.sessions))
	for _, session := range s.sessions {
		checkers = append(checkers, session.checker)
	}
	s.mu.Unlock()
	slices.SortFunc(checkers, func(a, b health.Checker) int { return cmp.Compare(a.ID, b.ID) })
	return checkers
}

// State returns the server's knowledge of a checker.
func (s *Server) State(id string) State {
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	if session == nil {
		return State{Specifier: NotSent}
	}
	return session.state()
}

// Close ends all sessions with UNAVAILABLE, refuses new ones and waits until no
// goroutine is left. It may call the sink until it returns.
func (s *Server) Close() { s.gate.Close() }

// now is the time since start, in nanoseconds.
func (s *Server) now() int64 { return int64(time.Since(s.start)) }
