package hds

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/gate"
)

// stream is one stream of one checker, or its fetches for as long as they
// follow each other.
type stream struct {
	// Set before others know of the stream.
	server  *Server
	grpc    grpc.ServerStream // nil where it fetches
	calls   chan *call        // its fetches; nil where it has a stream
	v2      bool              // it gets what has a v2 form
	checker health.Checker
	node    *corev3.Node // as kept
	origin  origin
	before  *stream       // whose place it took; its end is waited for
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed when the sink is called no more
	wake    chan struct{} // holds one: there is something to send

	// Atomic. Times are those of Server.now.
	introduced atomic.Bool
	heard      atomic.Int64          // when anything came in last
	free       atomic.Int64          // since when hdsd reads what comes in; busy: it does not
	reports    atomic.Uint64         // how many came in
	reported   atomic.Int64          // when the last one did
	partial    atomic.Bool           // what it is sent leaves out clusters that have no form for it
	follows    atomic.Bool           // it has reported something that it was sent
	silent     atomic.Bool           // it is thought to have rejected what it was sent first
	strange    atomic.Uint64         // entries
	plans      atomic.Pointer[plans] // written by the sending goroutine
	told       atomic.Pointer[told]  // written by the sending goroutine
	accepted   atomic.Uint64         // seq of the newest plan matched; written by the receiving goroutine

	// Guarded by Server.mu.
	replaced, ending bool
	warned           time.Time // when it was last logged that another claims its node id

	stopOnce sync.Once
	cause    error // written before stopped is closed

	telling sync.Mutex // held for each call of the sink after Connected
	over    bool       // the sink is called no more; guarded by telling

	mu      sync.Mutex
	wanted  *specifier.Specifier // to be sent; nil when taken
	skipped bool                 // another was to be sent and never was
	behind  bool                 // what was assigned last is not in force yet

	retell bool // the next specifier has every vote told anew; owned by the sending goroutine
}

// StreamHealthCheck serves one checker until either side ends it.
func (s *Server) StreamHealthCheck(g grpc.BidiStreamingServer[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]) error {
	return s.serve(g, false)
}

func (s *Server) serve(g grpc.ServerStream, v2 bool) error {
	if !s.gate.Enter() {
		return gate.ErrClosing
	}
	defer s.gate.Leave()
	st := s.newStream()
	st.grpc, st.v2 = g, v2
	s.gate.Go(st.receive)
	first := time.NewTimer(s.options.FirstMessageTimeout)
	defer first.Stop()
	for {
		select {
		case <-st.stopped:
			return st.cause
		case <-s.gate.Closing():
			return gate.ErrClosing
		case <-first.C:
			if !st.introduced.Load() {
				return status.Errorf(codes.DeadlineExceeded, "no first message within %s: send health_check_request with node and capability", s.options.FirstMessageTimeout)
			}
		}
	}
}

func (s *Server) newStream() *stream {
	return &stream{server: s, stopped: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// stop ends the stream with err; the first call counts. It does not wait.
func (st *stream) stop(err error) {
	st.stopOnce.Do(func() {
		st.cause = err
		close(st.stopped)
	})
}

// receive runs in a goroutine of its own from the start of the stream to its
// end: grpc ends the wait for the next message when the handler returns.
func (st *stream) receive() {
	defer close(st.done)
	st.stop(st.converse())
}

func (st *stream) converse() error {
	first := &message{}
	if err := st.grpc.RecvMsg(first); err != nil {
		return ended(err)
	}
	st.introduced.Store(true)
	st.heard.Store(st.server.now())
	who, err := introduce(first.bytes)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	st.checker, st.node = who.checker, who.kept
	st.origin = origin{who.node, callerOf(st.grpc.Context())}
	if err := st.server.join(st); err != nil {
		return err
	}
	defer st.leave()
	st.connected()
	st.server.gate.Go(st.send)
	return st.listen()
}

// connected tells the sink, when it was told all about the stream before.
func (st *stream) connected() {
	if st.before != nil {
		<-st.before.done
		st.before = nil
	}
	st.server.sink.Connected(st.checker)
	st.free.Store(st.server.now())
}

// leave ends what began with connected.
func (st *stream) leave() {
	st.telling.Lock()
	st.over = true
	st.telling.Unlock()
	st.server.leave(st)
}

func (st *stream) listen() error {
	in, r := &message{}, &reader{}
	for {
		if err := st.grpc.RecvMsg(in); err != nil {
			return ended(err)
		}
		if err := st.hear(in, r); err != nil {
			return err
		}
	}
}

// hear takes one report.
func (st *stream) hear(in *message, r *reader) error {
	s := st.server
	st.free.Store(busy)
	defer func() { st.free.Store(s.now()) }()
	now := s.now()
	st.heard.Store(now)
	st.reported.Store(now)
	st.reports.Add(1)
	var current plans
	if p := st.plans.Load(); p != nil {
		current = *p
	}
	got, err := r.read(in, current)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	newly := got.matched > st.accepted.Load()
	st.accepted.Store(got.matched)
	st.strange.Add(got.strange)
	s.metrics.count(&got)
	if got.follows || len(got.votes) > 0 {
		st.follows.Store(true)
	}
	st.telling.Lock()
	defer st.telling.Unlock()
	if st.follows.Load() {
		st.speaks()
	}
	if newly {
		s.tellFollows(st.checker.ID, current.numbered(got.matched))
	}
	s.sink.Reported(st.checker.ID, got.votes)
	return nil
}

// ended gives what a stream whose peer went away ends with.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// silence is how long nothing was heard.
func (st *stream) silence() time.Duration {
	return time.Duration(st.server.now() - st.heard.Load())
}

func (st *stream) assign(spec *specifier.Specifier) {
	st.mu.Lock()
	st.skipped = st.skipped || st.wanted != nil
	st.wanted, st.behind = spec, spec != nil
	st.mu.Unlock()
	select {
	case st.wake <- struct{}{}:
	default: // it will see this one
	}
}

func (st *stream) take() *specifier.Specifier {
	st.mu.Lock()
	defer st.mu.Unlock()
	spec := st.wanted
	st.wanted = nil
	st.retell, st.skipped = st.retell || st.skipped, false
	return spec
}

// announce puts the plan of a specifier in force, unless it changed nothing;
// it tells whether it did. It is called by the goroutine that sends.
func (st *stream) announce(spec *specifier.Specifier, sending bool) bool {
	defer st.catchUp()
	var now plans
	if p := st.plans.Load(); p != nil {
		now = *p
	}
	seq := uint64(1)
	if current := now.current(); current != nil {
		// Where one between was never sent, whoever assigned it counts on every
		// vote being told anew.
		if !st.retell && !spec.Retell && !sending && slices.Equal(current.order, spec.Order) {
			return false
		}
		st.retell = false
		seq = current.seq + 1
	}
	next := now.with(newPlan(seq, spec), st.accepted.Load())
	st.plans.Store(&next)
	return true
}

// catchUp notes that what was taken to be sent is in force.
func (st *stream) catchUp() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.behind = st.wanted != nil
}

func (st *stream) isBehind() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.behind
}

func (st *stream) state() State {
	state := State{Connected: true, Specifier: NotSent, StrangeReports: st.strange.Load(), Followed: st.accepted.Load() > 0}
	if st.reports.Load() > 0 {
		state.LastReport = time.Now().Add(time.Duration(st.reported.Load() - st.server.now()))
	}
	behind := st.isBehind() // first: else one that comes in force meanwhile goes unseen
	if p := st.plans.Load(); p != nil && !behind && !st.partial.Load() {
		state.Specifier = Sent
		if st.accepted.Load() >= p.current().seq {
			state.Specifier = Synced
		}
	}
	if state.Silent = st.silent.Load(); state.Silent {
		state.Reason = st.server.silenceText()
	}
	return state
}
