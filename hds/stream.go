package hds

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/hds/specifier"
	"hdsd/health"
)

// stream is one stream of one checker.
type stream struct {
	// Set before others know of the stream.
	server  *Server
	grpc    grpc.ServerStream
	checker health.Checker
	origin  origin
	before  *stream       // whose place it took; its end is waited for
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed when the sink is called no more
	wake    chan struct{} // holds one: there is something to send

	// Atomic. Times are those of Server.now.
	introduced atomic.Bool
	heard      atomic.Int64          // when anything came in last
	reports    atomic.Uint64         // how many came in
	strange    atomic.Uint64         // entries
	plans      atomic.Pointer[plans] // written by the sending goroutine
	accepted   atomic.Uint64         // seq of the newest plan matched; written by the receiving goroutine

	// Guarded by Server.mu.
	replaced, ending, refusalLogged bool

	stopOnce sync.Once
	cause    error // written before stopped is closed

	mu     sync.Mutex
	wanted *specifier.Specifier // to be sent; nil when taken
}

// StreamHealthCheck serves one checker until either side ends it.
func (s *Server) StreamHealthCheck(g grpc.BidiStreamingServer[healthv3.HealthCheckRequestOrEndpointHealthResponse, healthv3.HealthCheckSpecifier]) error {
	if !s.enter() {
		return errClosing()
	}
	defer s.running.Done()
	st := &stream{
		server: s, grpc: g,
		stopped: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.running.Go(st.receive)
	first := time.NewTimer(s.options.FirstMessageTimeout)
	defer first.Stop()
	for {
		select {
		case <-st.stopped:
			return st.cause
		case <-s.closing:
			return errClosing()
		case <-first.C:
			if !st.introduced.Load() {
				return status.Errorf(codes.DeadlineExceeded, "no first message within %s: send health_check_request with node and capability", s.options.FirstMessageTimeout)
			}
		}
	}
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
	st.checker, st.origin = who.checker, origin{who.node, hostOf(st.grpc.Context())}
	if err := st.server.join(st); err != nil {
		return err
	}
	defer st.server.leave(st)
	if st.before != nil {
		<-st.before.done
		st.before = nil
	}
	st.server.sink.Connected(st.checker)
	st.server.running.Go(st.send)
	return st.listen()
}

func (st *stream) listen() error {
	s := st.server
	in, r := &message{}, &reader{}
	for {
		if err := st.grpc.RecvMsg(in); err != nil {
			return ended(err)
		}
		st.heard.Store(s.now())
		st.reports.Add(1)
		var current plans
		if p := st.plans.Load(); p != nil {
			current = *p
		}
		got, err := r.read(in, current)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		st.accepted.Store(got.matched)
		st.strange.Add(got.strange)
		s.metrics.count(&got)
		s.sink.Reported(st.checker.ID, got.votes)
	}
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
	st.wanted = spec
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
	return spec
}

func (st *stream) state() State {
	state := State{Connected: true, Specifier: NotSent, StrangeReports: st.strange.Load()}
	if st.reports.Load() > 0 {
		state.LastReport = time.Now().Add(-st.silence())
	}
	if p := st.plans.Load(); p != nil {
		state.Specifier = Sent
		if st.accepted.Load() >= p.current().seq {
			state.Specifier = Synced
		}
	}
	return state
}
