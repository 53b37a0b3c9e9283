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

// readyState is what readiness depends on. Any goroutine reads it.
type readyState struct {
	serving   atomic.Bool // every source has answered, and hdsd is not stopping
	needsDisk atomic.Bool // history.require_writable
	changed   chan struct{}
	version   string    // set once
	born      time.Time // set once
	restored  restored  // set once
	told      func()    // set once: of the first time; nil: nobody is

	failing atomic.Pointer[time.Time] // since when the disk fails; nil while it does not
}

// disk notes since when the disk fails; nil: it does not.
func (r *readyState) disk(failing error, now time.Time) {
	if failing == nil {
		r.failing.Store(nil)
		return
	}
	r.failing.CompareAndSwap(nil, &now)
}

// process says how the process is.
func (c *Coordinator) process() query.Process {
	p := query.Process{
		Refusing: c.servers.refusals.named(),
		Version:  c.ready.version, NotReady: c.notReady(), Frozen: shownFreeze(c.core.publisher.frozen.Load()),
		Failing: c.query.HistoryFailing(), Started: c.ready.born,
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

// change has gRPC health follow. It does not wait.
func (r *readyState) change() {
	select {
	case r.changed <- struct{}{}:
	default: // it will look anyway
	}
}

// readiness says whether hdsd serves. Only Run calls it.
func (c *Coordinator) readiness(serving bool) {
	c.ready.serving.Store(serving)
	c.tellHealth()
}

// tellHealth has gRPC health say what /readyz does. Only Run calls it.
func (c *Coordinator) tellHealth() {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if c.isReady() {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	c.servers.health.SetServingStatus("", status)
}

// serveReady answers /readyz. What is wrong without making hdsd unready stands on lines
// of its own.
func (c *Coordinator) serveReady(w http.ResponseWriter, _ *http.Request) {
	if why := c.notReady(); why != "" {
		http.Error(w, "not ready: "+printable.Text(why), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
	if frozen := shownFreeze(c.core.publisher.frozen.Load()); frozen != nil {
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
func (c *Coordinator) isReady() bool { return c.ready.serving.Load() && c.missingDisk() == "" }

// notReady returns why hdsd is not ready, or "".
func (c *Coordinator) notReady() string {
	if !c.ready.serving.Load() {
		return cmp.Or(c.feed.Waiting(), "starting or stopping")
	}
	if failing := c.missingDisk(); failing != "" {
		return "history failing: " + failing
	}
	return ""
}

// missingDisk returns why the disk fails if hdsd is not ready without it, or "".
func (c *Coordinator) missingDisk() string {
	if !c.ready.needsDisk.Load() {
		return ""
	}
	return c.query.HistoryFailing()
}
