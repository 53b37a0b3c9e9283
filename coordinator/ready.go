package coordinator

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"hdsd/coordinator/query"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/printable"
)

// readyState holds the conditions of readiness. Any goroutine may read it.
type readyState struct {
	serving   atomic.Bool // each source has answered, and hdsd is not stopping
	needsDisk atomic.Bool // history.require_writable
	changed   chan struct{}
	version   string         // of hdsd; set once
	start     time.Time      // start of the process; set once
	restored  restoredCounts // set once
	onReady   func()         // set once; called when hdsd is ready for the first time; may be nil

	failing atomic.Pointer[time.Time] // beginning of the failure of the disk; nil without one
}

// disk sets the state of the disk; a nil error ends a failure.
func (r *readyState) disk(failing error, now time.Time) {
	if failing == nil {
		r.failing.Store(nil)
		return
	}
	r.failing.CompareAndSwap(nil, &now)
}

// process returns the state of the process for queries.
func (c *Coordinator) process() query.Process {
	p := query.Process{
		Refusing: c.servers.refusals.named(), Replication: c.replicas.troubles(),
		Version: c.ready.version, NotReady: c.notReady(), Frozen: shownFreeze(c.core.publisher.freeze.Load()),
		Failing: c.query.HistoryFailing(), Started: c.ready.start,
	}
	p.Waiting, p.WaitingAnswers = c.servers.bounds.waiting(time.Now())
	c.mu.Lock()
	p.Shadow = c.config.GetMode() == configv1.Mode_SHADOW
	c.mu.Unlock()
	if since := c.ready.failing.Load(); since != nil {
		p.FailingSince = *since
	}
	return p
}

// change requests an update of gRPC health. It does not wait.
func (r *readyState) change() {
	select {
	case r.changed <- struct{}{}:
	default: // an update is due already
	}
}

// setServing sets whether hdsd serves. Only Run calls it.
func (c *Coordinator) setServing(serving bool) {
	c.ready.serving.Store(serving)
	c.updateHealth()
}

// updateHealth updates gRPC health to the status of /readyz. Only Run calls it.
func (c *Coordinator) updateHealth() {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if c.isReady() {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	c.servers.health.SetServingStatus("", status)
}

// serveReady answers /readyz. Troubles that do not make hdsd unready have lines of their own.
func (c *Coordinator) serveReady(w http.ResponseWriter, _ *http.Request) {
	if reason := c.notReady(); reason != "" {
		http.Error(w, "not ready: "+printable.Text(reason), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
	if frozen := shownFreeze(c.core.publisher.freeze.Load()); frozen != nil {
		fmt.Fprintln(w, printable.Text(frozen.String()))
	}
	for _, line := range heldLines(c.feed.Held()) {
		fmt.Fprintln(w, printable.Text(line))
	}
	if failing := c.query.HistoryFailing(); failing != "" {
		fmt.Fprintln(w, "history failing: "+printable.Text(failing))
	}
}

// isReady reports whether hdsd is ready.
func (c *Coordinator) isReady() bool {
	return c.ready.serving.Load() && c.missingDisk() == "" && c.replicas.notReady() == ""
}

// notReady returns the reason why hdsd is not ready; empty if it is.
func (c *Coordinator) notReady() string {
	if !c.ready.serving.Load() {
		return cmp.Or(c.feed.Waiting(), "starting or stopping")
	}
	if failing := c.missingDisk(); failing != "" {
		return "history failing: " + failing
	}
	return c.replicas.notReady()
}

// missingDisk returns the failure of a disk that readiness requires; empty without one.
func (c *Coordinator) missingDisk() string {
	if !c.ready.needsDisk.Load() {
		return ""
	}
	return c.query.HistoryFailing()
}
