package coordinator

import (
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// These constants are for traces of slow events of the core.
const (
	slowEvent    = 100 * time.Millisecond
	flightAge    = 5 * time.Second // minimum time that a trace covers, unless it has flightBytes
	flightBytes  = 16 << 20
	maxTraces    = 5
	traceSpacing = time.Minute // minimum time between two traces
	traceFolder  = "traces"    // in data_dir
	traceName    = "20060102-150405.000.trace"
)

// admin serves profiles of the process, and the flight recorder: a trace of the last seconds. It also stores
// traces of slow events.
type admin struct {
	server   *http.Server
	listener net.Listener
	folder   string // of stored traces
	log      zerolog.Logger
	recorder *trace.FlightRecorder

	slow    chan time.Duration // durations of slow events
	done    chan struct{}
	running sync.WaitGroup

	writing sync.Mutex // held while a trace is written
}

// newAdmin opens the listener. It serves and records nothing before start.
func newAdmin(address, dataDir string, log zerolog.Logger) (*admin, error) {
	listener, err := listenAt("admin.address", address)
	if err != nil {
		return nil, err
	}
	return &admin{
		listener: listener, folder: filepath.Join(dataDir, traceFolder), log: log, slow: make(chan time.Duration, 1), done: make(chan struct{}),
		recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightAge, MaxBytes: flightBytes}),
	}, nil
}

// handler returns the routes for profiles and the flight recorder.
func (a *admin) handler() *routes {
	mux := &routes{ServeMux: http.NewServeMux()}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/flight", a.serveFlight)
	return mux
}

// serveFlight serves the trace of the last seconds.
func (a *admin) serveFlight(w http.ResponseWriter, _ *http.Request) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if !a.recorder.Enabled() {
		http.Error(w, "the flight recorder does not run: another part of this process has one", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = a.recorder.WriteTo(w) // the client notices a cut-off response
}

// start starts the flight recorder, of which a process has one.
func (a *admin) start() {
	if err := a.recorder.Start(); err != nil {
		a.log.Warn().Str("event", "trace_not_kept").Err(err).Msg("traces of slow events cannot be kept")
		return
	}
	a.running.Go(a.watch)
}

// watch stores traces of slow events until stop.
func (a *admin) watch() {
	var last time.Time
	for {
		select {
		case <-a.done:
			return
		case duration := <-a.slow:
			if now := time.Now(); now.Sub(last) >= traceSpacing {
				last = now
				a.storeTrace(now, duration)
			}
		}
	}
}

// stop stops the server and the flight recorder.
func (a *admin) stop() {
	close(a.done)
	a.running.Wait()
	a.server.Close()
	a.recorder.Stop()
}

// observeStep takes the duration of each event of the core.
func (a *admin) observeStep(d time.Duration) {
	if d < slowEvent || !a.recorder.Enabled() {
		return
	}
	select {
	case a.slow <- d:
	default: // a trace is being written
	}
}

// storeTrace stores a trace, and deletes the oldest ones.
func (a *admin) storeTrace(now time.Time, duration time.Duration) {
	path, err := a.write(now)
	if err != nil {
		a.log.Warn().Str("event", "trace_not_kept").Err(err).Msg("the trace of a slow event cannot be kept")
		return
	}
	a.log.Warn().Str("event", "event_slow").Dur("took", duration).Str("trace", path).Msg("an event took the core long; a trace of the last seconds is kept")
}

// write writes a trace to a file.
func (a *admin) write(now time.Time) (path string, err error) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(a.folder, now.UTC().Format(traceName))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = a.recorder.WriteTo(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, a.prune()
}

// prune deletes all but the newest traces.
func (a *admin) prune() error {
	paths, err := filepath.Glob(filepath.Join(a.folder, "*.trace"))
	if err != nil {
		return err
	}
	slices.Sort(paths)
	var errs []error
	for len(paths) > maxTraces {
		errs = append(errs, os.Remove(paths[0]))
		paths = paths[1:]
	}
	return errors.Join(errs...)
}
