package check

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hdsd/health"
)

// host is an endpoint with its checks.
type host struct {
	spec hostSpec // set once

	mu      sync.Mutex
	probers []*prober // in the order of the checks
	status  uint16    // of the latest HTTP answer; 0 for none since the latest failure

	reported atomic.Uint32 // for reports: health in the upper, HTTP status in the lower 16 bits
}

func newHost(spec hostSpec) *host {
	h := &host{spec: spec}
	h.reported.Store(uint32(health.Unhealthy) << 16)
	return h
}

// view returns the values for a report.
func (h *host) view() (health.Status, uint16) {
	reported := h.reported.Load()
	return health.Status(reported >> 16), uint16(reported)
}

// publish updates the values of view. The caller holds mu.
func (h *host) publish() {
	h.reported.Store(uint32(statusOf(h.probers))<<16 | uint32(h.status))
}

// record handles the outcome of a probe, and returns the delay until the next.
func (h *host) record(p *prober, o Outcome, status int) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	policy := &p.check.policy
	next, pending := p.state.Apply(policy, o)
	p.state = next
	if slices.Contains(h.probers, p) { // else it was replaced in the meantime
		// A failure of any check takes the status away, as in Envoy; a TCP
		// check that passes leaves it.
		if status != 0 || o == NetworkFailure || o == TimedOut {
			h.status = uint16(status)
		}
		h.publish()
	}
	return policy.Next(o, pending, p.net.random)
}

// use sets the checks of the host. Existing ones continue, others start and stop. It returns
// those to start.
func (h *host) use(checks []*checkSpec, n *network) (start []*prober) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, _ := h.view()
	old := h.probers
	h.probers = make([]*prober, 0, len(checks))
	for _, c := range checks {
		index := slices.IndexFunc(old, func(p *prober) bool { return p.check.key == c.key })
		if index >= 0 {
			h.probers = append(h.probers, old[index])
			continue
		}
		p := &prober{check: c, host: h, net: n, state: NewState(before)}
		h.probers = append(h.probers, p)
		start = append(start, p)
	}
	for _, p := range old {
		if !slices.Contains(h.probers, p) {
			p.stop()
		}
	}
	h.publish()
	return start
}

// stop stops all checks.
func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.probers {
		p.stop()
	}
	h.probers = nil
}

// begin runs a prober.
func (p *prober) begin(ctx context.Context, work *sync.WaitGroup) {
	ctx, p.stop = context.WithCancel(ctx)
	work.Go(func() {
		defer p.stop()
		p.run(ctx)
	})
}
