package coordinator

import (
	"errors"
	"fmt"
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

// How slow events of the core are traced.
const (
	slowEvent    = 100 * time.Millisecond
	flightAge    = 5 * time.Second // how far back a trace goes at least, unless it has flightBytes
	flightBytes  = 16 << 20
	keptTraces   = 5
	traceSpacing = time.Minute // between two traces of slow events
	traceFolder  = "traces"    // in data_dir
	traceName    = "20060102-150405.000.trace"
)

// admin is the address for looking into the process: profiles and the flight recorder, a
// trace of the last seconds.
type admin struct {
	server   *http.Server
	listener net.Listener
	folder   string // of traces that are kept
	log      zerolog.Logger
	recorder *trace.FlightRecorder

	slow    chan time.Duration // events of the core that took too long
	done    chan struct{}
	running sync.WaitGroup

	writing sync.Mutex // one trace at a time
}

// newAdmin listens. It serves and records nothing yet.
func newAdmin(address, dataDir string, log zerolog.Logger) (*admin, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin.address: %w", err)
	}
	return &admin{
		listener: listener, folder: filepath.Join(dataDir, traceFolder), log: log, slow: make(chan time.Duration, 1), done: make(chan struct{}),
		recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightAge, MaxBytes: flightBytes}),
	}, nil
}

// handler serves profiles and the trace of the last seconds.
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

func (a *admin) serveFlight(w http.ResponseWriter, _ *http.Request) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if !a.recorder.Enabled() {
		http.Error(w, "the flight recorder does not run: another part of this process has one", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = a.recorder.WriteTo(w) // whoever asked sees that it is cut off
}

// start records, until stop. A process has one flight recorder.
func (a *admin) start() {
	if err := a.recorder.Start(); err != nil {
		a.log.Warn().Str("event", "trace_not_kept").Err(err).Msg("traces of slow events cannot be kept")
		return
	}
	a.running.Go(a.watch)
}

// watch keeps traces of slow events.
func (a *admin) watch() {
	var last time.Time
	for {
		select {
		case <-a.done:
			return
		case took := <-a.slow:
			if now := time.Now(); now.Sub(last) >= traceSpacing {
				last = now
				a.keep(now, took)
			}
		}
	}
}

func (a *admin) stop() {
	close(a.done)
	a.running.Wait()
	a.server.Close()
	a.recorder.Stop()
}

// took is called after each event of the core.
func (a *admin) took(d time.Duration) {
	if d < slowEvent || !a.recorder.Enabled() {
		return
	}
	select {
	case a.slow <- d:
	default: // a trace is being written
	}
}

// keep writes a trace, and deletes the oldest.
func (a *admin) keep(now time.Time, took time.Duration) {
	path, err := a.write(now)
	if err != nil {
		a.log.Warn().Str("event", "trace_not_kept").Err(err).Msg("the trace of a slow event cannot be kept")
		return
	}
	a.log.Warn().Str("event", "event_slow").Dur("took", took).Str("trace", path).Msg("an event took the core long; a trace of the last seconds is kept")
}

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

// prune leaves the newest traces.
func (a *admin) prune() error {
	all, err := filepath.Glob(filepath.Join(a.folder, "*.trace"))
	if err != nil {
		return err
	}
	slices.Sort(all)
	var errs []error
	for len(all) > keptTraces {
		errs = append(errs, os.Remove(all[0]))
		all = all[1:]
	}
	return errors.Join(errs...)
}
